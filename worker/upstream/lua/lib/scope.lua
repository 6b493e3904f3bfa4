-- Scopes: how the state of their limits is read and written, and when parked callers come back.

-- The fields of a scope. All times are Redis' milliseconds.
--   at           when it was written last
--   rt, rl       requests: when the next may be sent after those that were; and after those with a ticket
--   tt, tl       the same for tokens
--   late         when the last ticket is due that had to be moved, because those before it came late
--   far, poll    when the last parked caller comes back that has a turn; and the last beyond the crowd
--   n            calls that were let through, for displays, which compare two moments
--   pause        nothing is sent before
--   rtt          usual latency, ms
--   cwnd, peak   adaptive calls at a time (0: unbounded), most at a time in this round trip
--   wat, wok, wbad                   the round trip: since when, calls answered, turned away or too slow
--   pace, good           learned ms from one call to the next (0: none); the last one at which few were refused
--   hold, held, cut      rounds until a faster one is tried, how many passed, the last call (by `n`) that does not count
--   since, n0            this round of it: since when (0: none), `n` at its start
--   served, refused      calls of it
--   row, rowbad          refusals after which no later call was served: the first call (by `n`), how many
--   open, era, span, shut            breaker: open until (0: closed), serial of its changes, how long, closed when
--   bw, g0, b0, g1, b1, pn, pt       its buckets (since when, good and bad calls), probes given, the last when
local scope_fields = {'at', 'rt', 'rl', 'tt', 'tl', 'late', 'far', 'poll', 'n', 'pause', 'rtt', 'cwnd', 'peak', 'wat',
  'wok', 'wbad', 'pace', 'good', 'hold', 'held', 'cut', 'since', 'n0', 'served', 'refused', 'row', 'rowbad', 'open', 'era', 'span', 'shut', 'bw', 'g0', 'b0', 'g1', 'b1', 'pn', 'pt'}

-- Those of them that are moments: they move when the server's clock is set back.
local scope_moments = {'rt', 'rl', 'tt', 'tl', 'late', 'far', 'poll', 'pause', 'wat', 'since', 'open', 'shut', 'bw', 'pt'}

-- Reads the state of the limits of a scope.
local function read_scope(name)
  local scope, before = {}, {}
  for _, field in ipairs(scope_fields) do scope[field] = 0 end
  local flat = call('HGETALL', scope_key(name))
  for at = 1, #flat, 2 do
    local value = tonumber(flat[at + 1])
    scope[flat[at]], before[flat[at]] = value, value
  end
  scope.before = before
  local back = scope.at - now()
  if back > 0 then -- the server's clock was set back: everything stays as far away as it was
    for _, field in ipairs(scope_moments) do
      if scope[field] > 0 then scope[field] = math.max(1, scope[field] - back) end
    end
  end
  return scope
end

-- Scopes expire, their names do not: each new one checks a few, so that they never pile up.
local function name_scope(name)
  for _, known in ipairs(call('ZRANDMEMBER', SCOPES_KEY, 8)) do
    if call('EXISTS', scope_key(known)) == 0 then call('ZREM', SCOPES_KEY, known) end
  end
  call('ZADD', SCOPES_KEY, now(), name)
end

-- Writes what has changed of a scope since it was read. Its keys live on for USED_MS; their expiry is moved by the
-- first use in each half of that time, as moving it with each call would be a quarter of what a call appends.
local function write_scope(name, scope)
  if scope.at == 0 then name_scope(name) end
  local half = USED_MS / 2
  local is_first = math.floor(scope.at / half) ~= math.floor(now() / half)
  scope.at = now()
  local changed = {}
  for _, field in ipairs(scope_fields) do
    local value = scope[field]
    if value ~= (scope.before[field] or 0) then
      changed[#changed + 1] = field
      changed[#changed + 1] = string.format('%.3f', value)
    end
  end
  if #changed > 0 then call('HSET', scope_key(name), unpack(changed)) end
  if is_first then
    call('PEXPIRE', scope_key(name), USED_MS)
    call('PEXPIRE', permits_key(name), USED_MS)
  end
end

-- When a caller that does not wait here should come back, in ms. Callers get turns one after the other; beyond a
-- crowd they are to ask again, spread so that never many come at once. A turn is not reserved: a caller
-- that does not come back costs nothing.
local function park_ms(scope, ready, spacing)
  local crowd = math.max(CROWD_MS, CROWD * spacing)
  local turn = math.max(scope.far, ready)
  if turn <= ready + crowd then
    scope.far = turn + spacing
  else
    turn = math.max(scope.poll, ready + crowd / 2)
    scope.poll = turn + LATER_MS
  end
  return math.max(LEAD_MS, turn - LEAD_MS - now())
end
