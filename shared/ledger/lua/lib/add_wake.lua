-- Appends the wake-up of a chunk, five values, to the list that the caller of the script will publish.
local function add_wake(wakes, run, chunk, entry)
  local _, _, first, count = cmsgpack.unpack_limit(entry, 3)
  local size = #wakes
  wakes[size + 1], wakes[size + 2], wakes[size + 3] = run.kind, run.id, chunk
  wakes[size + 4], wakes[size + 5] = count, first
end
