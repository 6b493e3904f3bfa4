-- Reads any number of fields of a hash.
-- uses: ARGUMENT_SLICE
local function fetch(key, fields)
  if #fields <= ARGUMENT_SLICE then return call('HMGET', key, unpack(fields)) end
  local values = {}
  for first = 1, #fields, ARGUMENT_SLICE do
    local last = math.min(first + ARGUMENT_SLICE - 1, #fields)
    for at, value in ipairs(call('HMGET', key, unpack(fields, first, last))) do values[first + at - 1] = value end
  end
  return values
end
