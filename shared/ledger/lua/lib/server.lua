-- Redis' time, serial numbers, and commands with long argument lists or on a full server.

-- Lets a script that frees memory, or writes a few bytes at most, run on a server whose memory is full: Redis refuses
-- such a script at its first write, unless that one needs no memory, and then lets the script do all it does (in
-- every version, where the flag `allow-oom` is one of Redis 7). This write comes first and changes nothing.
local function when_full()
  call('HDEL', CLOCK_KEY, '')
end

-- Reads any number of fields of a hash.
local function fetch(key, fields)
  if #fields <= ARGUMENT_SLICE then return call('HMGET', key, unpack(fields)) end
  local values = {}
  for first = 1, #fields, ARGUMENT_SLICE do
    local last = math.min(first + ARGUMENT_SLICE - 1, #fields)
    for at, value in ipairs(call('HMGET', key, unpack(fields, first, last))) do values[first + at - 1] = value end
  end
  return values
end

-- Calls a command with a list of any length as its last arguments (an even number stays together).
local function sliced(command, key, values)
  for first = 1, #values, ARGUMENT_SLICE do
    call(command, key, unpack(values, first, math.min(first + ARGUMENT_SLICE - 1, #values)))
  end
end

-- Redis' own time in epoch milliseconds; read once, so that a script sees one moment.
local moment
local function now()
  if not moment then
    local time = call('TIME')
    moment = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return moment
end

-- Redis' time plus all that it was ever set back: what is put off for a second stays put off for a second.
-- A step forward makes it due early, which does no harm. Goes on while nobody ticks, unlike the ledger clock.
local steady_moment
local function steady()
  if not steady_moment then steady_moment = now() + (tonumber(call('HGET', CLOCK_KEY, 'back')) or 0) end
  return steady_moment
end

-- The ledger clock in milliseconds: Redis' time, but never more than SKEW_MS past the last tick.
-- So a frozen server, a fail-over, a stepped clock or an hour without workers ends no lease.
local ledger_moment
local function clock()
  if not ledger_moment then
    local last = call('HMGET', CLOCK_KEY, 'at', 'lc')
    local passed = now() - (tonumber(last[1]) or 0)
    ledger_moment = (tonumber(last[2]) or 0) + math.max(0, math.min(passed, SKEW_MS))
  end
  return ledger_moment
end

-- A number that was never given out before.
local function serial()
  return call('HINCRBY', CLOCK_KEY, 'seq', 1)
end
