-- Those parts of a chunk that still have no result of the chunk's generation.
-- uses: results_key, redo_key
local function undone(run, generation, parts)
  local left, results = {}, results_key(run.id)
  if run.mailboxes then
    for _, part in ipairs(parts) do
      if call('HEXISTS', results, part[1]) == 0 then left[#left + 1] = part end
    end
    return left
  end
  local asked = run.retried and call('HMGET', redo_key(run.id), unpack(parts)) or {}
  for at, index in ipairs(parts) do
    if asked[at] then
      if tonumber(asked[at]) == generation then left[#left + 1] = index end
    elseif call('HEXISTS', results, index) == 0 then
      left[#left + 1] = index
    end
  end
  return left
end
