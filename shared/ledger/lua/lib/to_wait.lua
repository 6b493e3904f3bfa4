-- Puts a chunk back among those that wait, at its place in the run.
-- uses: chunk_key, wait_key, order, unlease, join_ring
local function to_wait(run, chunk, left)
  local record = chunk_key(run.id, chunk)
  if unlease(run, chunk, left) then call('HDEL', record, 'own', 'w', 'at') end
  call('HSET', record, 'st', 'W')
  call('ZADD', wait_key(run.id), order(chunk), chunk)
  join_ring(run)
end
