-- Reads the stored tries of parked items, and how long each still waits.
--
-- ARGV: run, names of the items
-- Returns for each 'attempts|milliseconds|parked state', or an empty string when there is none
local found = call('HMGET', tries_key(ARGV[1]), unpack(ARGV, 2))
for at, noted in ipairs(found) do
  local attempts, due, failure = string.match(noted or '', '^(%d+)|(%d+)|(.*)$')
  local left = attempts and math.max(0, tonumber(due) - steady())
  found[at] = attempts and attempts .. '|' .. string.format('%.0f', left) .. '|' .. failure or ''
end
return found
