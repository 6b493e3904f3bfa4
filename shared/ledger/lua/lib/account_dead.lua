-- Keeps the dead set right for the turns of one block: a retried turn leaves it, one that ended in error enters.
-- uses: run_key, items_key, run_dead_key, batch_turn, bury, unbury
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
