-- Ends the loading of a run, if all of it is there, and publishes its first chunks.
--
-- ARGV: run, token, number of items that were read, digest of the input
-- Returns {ok, wakes} · {fenced}: not this loader's run any more · {short, items that are there}
local id = ARGV[1]
local run = read_run(id)
if not run or call('HGET', run_key(id), 'tok') ~= ARGV[2] then
  add_count('fenced loader')
  return {'fenced'}
end

if run.state == 'loading' then
  local total = 0
  if run.mailboxes then
    for _, entry in ipairs(call('HVALS', plan_key(id))) do
      local _, _, _, count = cmsgpack.unpack_limit(entry, 3)
      total = total + count
    end
  else
    total = call('HLEN', items_key(id))
  end
  if total == 0 or total ~= tonumber(ARGV[3]) then return {'short', total} end
  call('HSET', run_key(id), 'state', 'running', 'digest', ARGV[4], 'goal', total, 'total', total, 'sealed', now())
  call('SREM', BUSY_KEY, id)
  call('SADD', OPEN_KEY, id)
  run.state = 'running'
  use_namespace(run)
  join_ring(run)
end
return {'ok', top_up(run.kind, TOP_UP)}
