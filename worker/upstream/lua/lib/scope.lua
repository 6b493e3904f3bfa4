-- Reads and writes what the limits of a scope have come to. All times are Redis' milliseconds.
--   at           when it was written last
--   rt, rl       requests: when the next may be sent after those that were; and after those with a ticket
--   tt, tl       the same for tokens
--   late         when the last ticket is due that had to be moved, because those before it came late
--   far, poll    when the last parked caller comes back that has a turn; and the last beyond the crowd
--   n            calls that were let through, for people who look at two moments
--   pause        nothing is sent before
--   rtt          usual latency, ms
--   cwnd, peak   adaptive calls at a time (0: unbounded), most at a time in this round trip
--   wat, wok, wbad                   the round trip: since when, calls answered, turned away or too slow
--   open, era, span, shut            breaker: open until (0: closed), serial of its changes, how long, closed when
--   bw, g0, b0, g1, b1, pn, pt       its buckets (since when, good and bad calls), probes given, the last when
-- uses: scope_key, SCOPES_KEY, USED_MS, now
local fields = {'at', 'rt', 'rl', 'tt', 'tl', 'late', 'far', 'poll', 'n', 'pause', 'rtt', 'cwnd', 'peak', 'wat', 'wok',
  'wbad', 'open', 'era', 'span', 'shut', 'bw', 'g0', 'b0', 'g1', 'b1', 'pn', 'pt'}
local moments = {'rt', 'rl', 'tt', 'tl', 'late', 'far', 'poll', 'pause', 'wat', 'open', 'shut', 'bw', 'pt'}

local function read_scope(name)
  local scope, before = {}, {}
  for _, field in ipairs(fields) do scope[field] = 0 end
  local flat = call('HGETALL', scope_key(name))
  for at = 1, #flat, 2 do
    local value = tonumber(flat[at + 1])
    scope[flat[at]], before[flat[at]] = value, value
  end
  scope.before = before
  local back = scope.at - now()
  if back > 0 then -- the server's clock was set back: everything stays as far away as it was
    for _, field in ipairs(moments) do
      if scope[field] > 0 then scope[field] = math.max(1, scope[field] - back) end
    end
  end
  return scope
end

-- Scopes end by themselves, their names do not: each new one looks at a few, so that they never pile up.
local function name_scope(name)
  for _, known in ipairs(call('ZRANDMEMBER', SCOPES_KEY, 8)) do
    if call('EXISTS', scope_key(known)) == 0 then call('ZREM', SCOPES_KEY, known) end
  end
  call('ZADD', SCOPES_KEY, now(), name)
end

local function write_scope(name, scope)
  if scope.at == 0 then name_scope(name) end
  scope.at = now()
  local changed = {}
  for _, field in ipairs(fields) do
    local value = scope[field]
    if value ~= (scope.before[field] or 0) then
      changed[#changed + 1] = field
      changed[#changed + 1] = string.format('%.3f', value)
    end
  end
  if #changed > 0 then call('HSET', scope_key(name), unpack(changed)) end
  call('PEXPIRE', scope_key(name), USED_MS)
end
