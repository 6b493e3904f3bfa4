-- Puts a chunk aside until a moment of the steady clock.
-- uses: chunk_key, parked_key, unlease
local function to_parked(run, chunk, left, due)
  local record = chunk_key(run.id, chunk)
  if unlease(run, chunk, left) then call('HDEL', record, 'own', 'w', 'at') end
  call('HSET', record, 'st', 'D')
  call('ZADD', parked_key(run.kind), due, run.id .. ' ' .. chunk)
end
