-- The dead set: items that ended in error, kept to be looked at and retried.

-- Copies an item that ended in error to the dead set; the oldest entries make room.
-- `shared.ledger.wire` reads the entry: a line of numbers and words, then payload and result.
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

-- Takes an item out of the dead set, because a retry has brought a new result.
local function unbury(id, index)
  if call('SREM', run_dead_key(id), index) == 0 then return end
  call('ZREM', DEAD_KEY, id .. ' ' .. index)
  call('HDEL', DEAD_ITEMS_KEY, id .. ' ' .. index)
end

-- Keeps the dead set right for the turns of one block: a retried turn leaves it, one that ended in error enters.
local function account_dead(id, batch, generation, offset, block, dead)
  if generation ~= '0' and call('EXISTS', run_dead_key(id)) == 1 then
    local indexes = string.match(block, '^0|%d+|%d+|%d+|([%d,]+)|')
    for index in string.gmatch(indexes or '', '%d+') do unbury(id, index) end
  end
  if dead == '' then return end
  local kind, payload = call('HGET', run_key(id), 'kind'), call('HGET', items_key(id), batch)
  local lines, wanted, number = {}, {}, offset - 1
  for line in string.gmatch(block .. '\n', '(.-)\n') do lines[number], number = line, number + 1 end
  for at in string.gmatch(dead, '%d+') do wanted[#wanted + 1] = tonumber(at) end
  for _, at in ipairs(wanted) do
    local index, line = batch_turn(payload, at)
    bury(id, index, kind, generation, 1, '', line, lines[at] or '')
  end
end
