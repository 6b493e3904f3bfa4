-- Acquires the permit for one call: from breaker, pause and all limits of all its scopes, or from none.
-- The first scope is the endpoint's own: breaker, pause and adaptive number of calls at a time are its, and the learned pace.
--
-- Limits are GCRA: each call moves the moment of the next one by its cost. A caller that is early gets a
-- ticket, a turn of its own within WAIT_MS: newcomers queue up behind tickets, while a due ticket is only compared
-- with what was really sent. So there is no thundering herd, an unused ticket leaves a gap and no burst, and limits
-- are never exceeded, however late a ticket is used.
--
-- ARGV: permit, ticket ('0': none), 1 if the caller may wait here, 1 if it has a breaker, number of scopes;
--       per scope: name, ms a request takes of its limit, ms of burst, ms its tokens take, ms of burst of tokens,
--       calls at a time (0: no limit each)
-- Returns {go, era, number of the call} · {wait, ms, ticket, why}: ask again then, with the ticket · {full, ms}: ask when a call ends,
--         or then · {later, ms, why}: park, and ask again then
local permit, ticket, may_wait, has_breaker = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4] == '1'
local moment, scopes = now(), {}
for at = 6, 6 * ARGV[5], 6 do
  scopes[#scopes + 1] = {
    name = ARGV[at], request = tonumber(ARGV[at + 1]), burst = tonumber(ARGV[at + 2]),
    tokens = tonumber(ARGV[at + 3]), token_burst = tonumber(ARGV[at + 4]), most = tonumber(ARGV[at + 5]),
    state = read_scope(ARGV[at]),
  }
end
local own = scopes[1].state
if own.pace > scopes[1].request then
  scopes[1].burst = scopes[1].request > 0 and math.min(scopes[1].burst, PACE_BURST_MS) or PACE_BURST_MS
  scopes[1].request = own.pace
end

if call('ZSCORE', permits_key(scopes[1].name), permit) then
  return {'go', string.format('%.0f', own.era), string.format('%.0f', own.n)}
end

-- On a server that is full this is refused, as any write that may need memory: no call is made whose answer could
-- not be kept. (The first write below would be taken, and with it all others.)
call('ZADD', permits_key(scopes[1].name), 'XX', 0, permit)

local function answer(...)
  for _, scope in ipairs(scopes) do write_scope(scope.name, scope.state) end
  return {...}
end

local function later(state, ready, spacing, why)
  return answer('later', math.ceil(park_ms(state, ready, spacing)), why)
end

local spacing = HELD_MS
for _, scope in ipairs(scopes) do spacing = math.max(spacing, scope.request, scope.tokens) end

-- 1. The breaker, and the pause that the upstream requested.
local is_half_open = has_breaker and own.open > 0 and own.open <= moment
local held, why = own.pause, 'paused'
if has_breaker and own.open > math.max(held, moment) then held, why = own.open, 'breaker' end
if is_half_open and own.pn >= PROBES and moment - own.pt < PROBE_LOST_MS then
  held, why = math.max(held, moment + PROBE_PAUSE_MS), 'breaker'
end
if held > moment then
  if may_wait and held <= moment + WAIT_MS then
    return answer('wait', math.ceil(held - moment), ARGV[2], why)
  end
  return later(own, held, spacing, why)
end

-- 2. Requests and tokens a minute.
local function ready_by(requests, tokens)
  local ready, slowest = moment, scopes[1]
  for _, scope in ipairs(scopes) do
    local state = scope.state
    local turn = math.max(
      scope.request > 0 and state[requests] - scope.burst or 0, scope.tokens > 0 and state[tokens] - scope.token_burst or 0)
    if turn > ready then ready, slowest = turn, scope end
  end
  return ready, slowest
end

local function move(requests, tokens)
  for _, scope in ipairs(scopes) do
    local state = scope.state
    if scope.request > 0 then state[requests] = math.max(state[requests], moment) + scope.request end
    if scope.tokens > 0 then state[tokens] = math.max(state[tokens], moment) + scope.tokens end
  end
end

local has_turn = false
if ticket > 0 and ticket <= moment + SLACK_MS then
  local ready, slowest = ready_by('rt', 'tt')
  has_turn = ready <= moment + SLACK_MS
  -- Earlier tickets were used late: this one moves behind them, and behind others that were moved.
  local turn = math.max(slowest.state.late, ready)
  if not has_turn and turn <= moment + WAIT_MS then
    slowest.state.late = turn + math.max(slowest.request, slowest.tokens)
    return answer('wait', math.ceil(turn - moment), string.format('%.3f', turn), 'rate')
  end
end
if not has_turn then
  if ticket > moment then return answer('wait', math.ceil(ticket - moment), ARGV[2], 'rate') end
  local ready, slowest = ready_by('rl', 'tl')
  if ready > moment then
    if not may_wait or ready > moment + WAIT_MS then
      return later(slowest.state, ready, math.max(slowest.request, slowest.tokens), 'rate')
    end
    move('rl', 'tl')
    return answer('wait', math.ceil(ready - moment), string.format('%.3f', ready), 'rate')
  end
end

-- 3. Calls at a time.
local in_use, adaptive = {}, own.cwnd
for at, scope in ipairs(scopes) do
  local permits, most = permits_key(scope.name), scope.most
  call('ZREMRANGEBYSCORE', permits, '-inf', clock())
  in_use[at] = call('ZCARD', permits)
  if at == 1 and adaptive > 0 and (most == 0 or adaptive < most) then most = math.max(1, math.floor(adaptive)) end
  if most > 0 and in_use[at] >= most then
    local pace = math.max(HELD_MS, own.rtt / most)
    if may_wait then return answer('full', math.ceil(math.min(250, pace))) end
    return later(scope.state, moment + WAIT_MS, pace, 'full')
  end
end

-- 4. The permit is granted, and counted.
move('rt', 'tt')
if has_turn then
  for _, scope in ipairs(scopes) do
    scope.state.rl = math.max(scope.state.rl, scope.state.rt)
    scope.state.tl = math.max(scope.state.tl, scope.state.tt)
  end
else
  move('rl', 'tl')
end
if is_half_open then
  own.pn = (own.pn >= PROBES and 0 or own.pn) + 1
  own.pt = moment
end
own.peak = math.max(own.peak, in_use[1] + 1)
for at, scope in ipairs(scopes) do
  scope.state.n = scope.state.n + 1
  call('ZADD', permits_key(scope.name), clock() + LEASE_MS, permit)
  if in_use[at] == 0 then call('PEXPIRE', permits_key(scope.name), USED_MS) end
end
return answer('go', string.format('%.0f', own.era), string.format('%.0f', own.n))
