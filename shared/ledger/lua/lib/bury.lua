-- Copies an item that ended in error to the dead set; the oldest entries make room.
-- `shared.ledger.wire` reads the entry: a line of numbers and words, then payload and result.
-- uses: DEAD_KEY, DEAD_ITEMS_KEY, DEAD_CAP, run_dead_key, now
local function bury(id, index, kind, generation, attempts, code, payload, result)
  local member = id .. ' ' .. index
  local head = table.concat({kind, generation, string.format('%.0f', now()), attempts, code, #payload}, '|')
  call('ZADD', DEAD_KEY, now(), member)
  call('HSET', DEAD_ITEMS_KEY, member, head .. '\n' .. payload .. result)
  call('SADD', run_dead_key(id), index)
  local excess = call('ZCARD', DEAD_KEY) - DEAD_CAP
  if excess <= 0 then return end
  for _, old in ipairs(call('ZRANGE', DEAD_KEY, 0, excess - 1)) do
    local of, at = string.match(old, '^(%S+) (%S+)$')
    call('ZREM', DEAD_KEY, old)
    call('HDEL', DEAD_ITEMS_KEY, old)
    call('SREM', run_dead_key(of), at)
  end
end
