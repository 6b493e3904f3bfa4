-- The generation of a batch is in its id: '17.3' is of the load, '2.5.3' of retry generation 2.
local function batch_generation(batch)
  return string.match(batch, '^(%d+)%.%d+%.%d+$') or '0'
end
