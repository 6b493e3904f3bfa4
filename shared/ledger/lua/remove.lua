-- Removes a run at once: a final one, a paused one, one that is being cancelled, or one that is loading and whose
-- loader is gone.
--
-- ARGV: run
-- Returns {ok} · {no, state} · {unknown}
when_full()
local run = read_run(ARGV[1])
if not run then return {'unknown'} end
local loader_gone = run.state == 'loading' and tonumber(call('HGET', run_key(run.id), 'until')) <= clock()
local is_still = is_final[run.state] or run.state == 'paused' or run.state == 'cancelling'
if run.alien or not (is_still or loader_gone) then return {'no', run.state} end

-- Chunks that are leased: their workers find them gone.
for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do
  local generation, _, _, parts = plan_entry(run, chunk)
  drop(run, chunk, undone(run, generation, parts))
end
wipe(run.id)
return {'ok'}
