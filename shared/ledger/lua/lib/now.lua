-- Redis' own time in epoch milliseconds; read once, so that a script sees one moment.
local moment
local function now()
  if not moment then
    local time = call('TIME')
    moment = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return moment
end
