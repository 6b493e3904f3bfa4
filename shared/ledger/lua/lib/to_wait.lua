-- Puts a chunk back among those that wait, at its place in the run.
-- uses: chunk_key, wait_key, order, unlease, join_ring
local function to_wait(run, chunk, left)
  unlease(run, chunk, left)
  call('HSET', chunk_key(run.id, chunk), 'st', 'W')
  call('ZADD', wait_key(run.id), order(chunk), chunk)
  join_ring(run)
end
