-- Lets the next tick send all unclaimed wake-ups of a kind again: a process that died may have taken some with it,
-- fetched but not claimed. Those that were still in the queue come twice, which does no harm.
-- uses: live_key, chunk_key, clock
local function repeat_wakes(kind)
  for _, member in ipairs(call('ZRANGE', live_key(kind), 0, -1)) do
    local id, chunk = string.match(member, '^(%S+) (%S+)$')
    if call('HGET', chunk_key(id, chunk), 'st') == 'P' then call('ZADD', live_key(kind), clock(), member) end
  end
end
