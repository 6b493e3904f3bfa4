-- Takes a run that has ended out of the ledger and adds its turns to the stream of its namespace, in one step: a run
-- is counted once, whoever folds it and however often.
--
-- ARGV: run, day (2026-01-31), seconds to keep the day's counters (0: for ever), most turns to keep, milliseconds to
--       keep a turn, number of counters; word and amount per counter; then a value per turn
-- Returns {ok} · {no, state} · {unknown}
when_full()
local run = read_run(ARGV[1])
if not run then return {'unknown'} end
if not is_final[run.state] or run.alien then return {'no', run.state} end

local day, counters = served_key(run.ns, ARGV[2]), tonumber(ARGV[6])
for at = 7, 5 + 2 * counters, 2 do call('HINCRBY', day, ARGV[at], ARGV[at + 1]) end
if counters > 0 and ARGV[3] ~= '0' then call('PEXPIREAT', day, string.format('%.0f', now() + ARGV[3] * 1000)) end
local turns = served_turns_key(run.ns)
for at = 7 + 2 * counters, #ARGV do call('XADD', turns, 'MAXLEN', '~', ARGV[4], '*', 't', ARGV[at]) end
if call('EXISTS', turns) == 1 then
  call('XTRIM', turns, 'MINID', '~', string.format('%.0f', math.max(0, now() - ARGV[5])))
  call('PEXPIREAT', turns, string.format('%.0f', now() + ARGV[5]))
end
wipe(run.id)
return {'ok'}
