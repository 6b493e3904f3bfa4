-- Pauses, resumes or ends a run.
--
-- ARGV: run, pause · resume · cancelled · aborted · incomplete
-- Returns {state of the run after it, wakes}; nothing changes while it loads and once it is final.
--         {'', {}} when there is no such run · {part, {}}: a part of a stream is not paused, since no list shows it,
--         and its threads would wait unseen
when_full()
local run, action = read_run(ARGV[1]), ARGV[2]
if not run then return {'', {}} end
if run.alien or is_final[run.state] or run.state == 'loading' then return {run.state, {}} end

if is_final[action] then
  if run.state ~= 'cancelling' then
    run.state = 'cancelling'
    call('HSET', run_key(run.id), 'state', 'cancelling', 'to', action)
    call('SADD', BUSY_KEY, run.id)
    call('ZREM', ring_key(run.kind), run.id)
    drop_waiting(run)
  end
  drop_admitted(run)
elseif action == 'pause' and run.state == 'running' then
  if call('HEXISTS', run_key(run.id), 'tells') == 1 then return {'part', {}} end
  run.state = 'paused'
  call('HSET', run_key(run.id), 'state', 'paused')
  call('ZREM', ring_key(run.kind), run.id)
elseif action == 'resume' and run.state == 'paused' then
  run.state = 'running'
  call('HSET', run_key(run.id), 'state', 'running')
  join_ring(run)
end
return {run.state, top_up(run.kind, TOP_UP)}
