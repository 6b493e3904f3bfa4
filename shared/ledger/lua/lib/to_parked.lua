-- Puts a chunk aside until a moment of Redis' time.
-- uses: chunk_key, parked_key, unlease
local function to_parked(run, chunk, left, due)
  unlease(run, chunk, left)
  call('HSET', chunk_key(run.id, chunk), 'st', 'D')
  call('ZADD', parked_key(run.kind), due, run.id .. ' ' .. chunk)
end
