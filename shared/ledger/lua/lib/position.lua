-- Reads a thread's position and the number of turns done of its front batch.
local function position(text)
  if not text then return 0, 0 end
  local at, offset = string.match(text, '^(%d+) (%d+)$')
  return tonumber(at), tonumber(offset)
end
