-- Reads one turn out of a batch (`shared.codecs.turn_batches`): its index in the input and its line.
local function batch_turn(payload, at)
  local from = string.find(payload, '\n', 1, true)
  local index, seen, first = nil, 0, string.match(payload, '^(%d+)-')
  if first then
    index = string.format('%.0f', first + at)
  else
    for number in string.gmatch(string.sub(payload, 1, from), '%d+') do
      if seen == at then index = number end
      seen = seen + 1
    end
  end
  for _ = 1, at do from = string.find(payload, '\n', from + 1, true) end
  local to = string.find(payload, '\n', from + 1, true)
  return index, string.sub(payload, from + 1, to and to - 1)
end
