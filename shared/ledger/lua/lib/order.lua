-- Where a chunk stands in its run: '17' from the load, '2.5' of retry generation 2, '17/3' taken apart.
local function order(chunk)
  local base = string.match(chunk, '^[^/]*')
  local generation, number = string.match(base, '^(%d+)%.(%d+)$')
  if generation then return generation * 1e9 + number end
  return tonumber(base)
end
