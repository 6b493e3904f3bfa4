-- Makes due at the next tick what a process that died may have taken with it. These are all unclaimed wake-ups of
-- the kind, since it may have fetched some (those that were still in the queue come twice, which does no harm), and
-- the leases of `worker`, for a worker of which more is known than that it fell silent.
-- uses: live_key, chunk_key, clock
local function repeat_wakes(kind, worker)
  for _, member in ipairs(call('ZRANGE', live_key(kind), 0, -1)) do
    local id, chunk = string.match(member, '^(%S+) (%S+)$')
    local field = call('HMGET', chunk_key(id, chunk), 'st', 'w')
    if field[1] == 'P' or (worker and field[2] == worker) then
      call('ZADD', live_key(kind), clock(), member)
    end
  end
end
