-- Lets a run take its turn at being published, behind all others, when it has chunks that wait.
-- uses: ring_key, wait_key, serial
local function join_ring(run)
  if run.state == 'running' and call('EXISTS', wait_key(run.id)) == 1
    and not call('ZSCORE', ring_key(run.kind), run.id) then
    call('ZADD', ring_key(run.kind), serial(), run.id)
  end
end
