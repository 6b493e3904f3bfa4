-- Takes a run that has ended out of the ledger and adds its turns to the stream of its namespace, in one step: a run
-- is counted once, whoever folds it and however often. What is too old leaves: turns with the requests that they
-- answered, counters, and threads that no longer talk.
--
-- ARGV: run, seconds to keep the counters of an hour (0: for ever), most turns to keep, milliseconds to keep a turn
-- Returns {ok} · {no, state}: it goes on, or is no part of a stream · {unknown}
when_full()
local run = read_run(ARGV[1])
if not run then return {'unknown'} end
local is_part = call('HEXISTS', run_key(run.id), 'tells') == 1
if not is_part or not is_final[run.state] or run.alien then return {'no', run.state} end

local ended, counters = batches_of(run.id), {}
for _, batch in ipairs(ended) do count_batch(batch, counters) end
if #ended > 0 then
  local hour = served_key(run.ns, string.format('%.0f', math.floor(now() / HOUR_MS)))
  for word, number in pairs(counters) do call('HINCRBY', hour, word, number) end
  call('ZADD', SERVED_KEY, now(), run.ns)
  if ARGV[2] ~= '0' then
    call('PEXPIREAT', hour, string.format('%.0f', now() + 1000 * ARGV[2]))
    call('ZREMRANGEBYSCORE', SERVED_KEY, '-inf', string.format('%.0f', now() - 1000 * ARGV[2]))
  end
  append_batches(run.ns, ended)
  evict_turns(run.ns, tonumber(ARGV[3]), tonumber(ARGV[4]), #ended + EVICTED)
end
evict_threads(run)
wipe(run.id)
return {'ok'}
