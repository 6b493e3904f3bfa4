-- Calls a command with a list of any length as its last arguments (an even number stays together).
-- uses: ARGUMENT_SLICE
local function sliced(command, key, values)
  for first = 1, #values, ARGUMENT_SLICE do
    call(command, key, unpack(values, first, math.min(first + ARGUMENT_SLICE - 1, #values)))
  end
end
