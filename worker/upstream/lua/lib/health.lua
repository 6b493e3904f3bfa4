-- What the end of a call changes: the adaptive number of calls at a time, and the circuit breaker.

-- Ends a round trip: the number backs off when too many calls of it timed out.
local function end_round(scope, in_use)
  if scope.wbad > OVERLOAD * (scope.wok + scope.wbad) then
    local used = math.max(1, scope.peak)
    scope.cwnd = math.max(1, BACK_OFF * (scope.cwnd > 0 and math.min(scope.cwnd, used) or used))
  end
  scope.wat, scope.wok, scope.wbad, scope.peak = 0, 0, 0, in_use
end

-- Moves the adaptive number of calls at a time: a little more after each good one (1/n), BACK_OFF of it when in a
-- round trip more than the share OVERLOAD timed out; once a round trip, never below one. A few among many answers are
-- no sign of load, and cost no throughput. A round trip ends with as many answers as there were calls under way, or
-- by time. Refusals do not count: they teach a pace.
local function adapt(scope, health, latency, in_use)
  if health ~= 'ok' and health ~= 'slow' then return end
  local passed, count = now() - scope.wat, scope.wok + scope.wbad
  if scope.wat > 0 and passed >= math.max(ROUND_MS, scope.rtt) and (count >= FEW or passed >= SPARSE_MS) then
    end_round(scope, in_use + 1)
  end
  if scope.wat == 0 then scope.wat = now() end
  if health == 'ok' then
    scope.rtt = scope.rtt > 0 and scope.rtt + SMOOTHING * (latency - scope.rtt) or latency
    scope.wok = scope.wok + 1
    if scope.cwnd > 0 and 2 * scope.peak >= scope.cwnd then scope.cwnd = scope.cwnd + 1 / scope.cwnd end
    if scope.cwnd > ADAPTIVE_CAP then scope.cwnd = 0 end
  else
    scope.wbad = scope.wbad + 1
  end
  if scope.wok + scope.wbad >= math.max(FEW, scope.peak) then end_round(scope, in_use) end
end

-- Opens the breaker until a moment, or closes it (0): a new era begins, with empty buckets.
local function change(scope, open)
  scope.open, scope.era, scope.pn, scope.pt = open, scope.era + 1, 0, 0
  scope.bw, scope.g0, scope.b0, scope.g1, scope.b1 = 0, 0, 0, 0, 0
end

-- Counts how a call ended in the latest of two buckets; the breaker and displays read these.
local function count_call(scope, is_good)
  local moment = now()
  if moment - scope.bw >= BUCKET_MS then
    local is_next = moment - scope.bw < 2 * BUCKET_MS
    scope.g1, scope.b1 = is_next and scope.g0 or 0, is_next and scope.b0 or 0
    scope.g0, scope.b0, scope.bw = 0, 0, moment
  end
  if is_good then scope.g0 = scope.g0 + 1 else scope.b0 = scope.b0 + 1 end
end

-- Counts how a call ended, and opens or closes the circuit breaker by it if the call began in its present era.
--   closed     opens when of at least LEAST_CALLS calls in two buckets more than half are bad
--   open       no call is let through, so none ends
--   half-open  the first good probe closes it, the first bad one opens it for twice as long
-- A call of an endpoint without a breaker (era -1) is only counted.
local function count_result(scope, era, is_good)
  if era < 0 then
    if scope.open == 0 then count_call(scope, is_good) end
    return
  end
  if era ~= scope.era then return end
  local moment = now()
  if scope.open > 0 then
    if is_good then
      scope.shut = moment
      return change(scope, 0)
    end
    scope.span = math.min(2 * scope.span, OPEN_CAP_MS)
    return change(scope, moment + scope.span)
  end
  count_call(scope, is_good)
  if is_good then return end
  local bad, all = scope.b0 + scope.b1, scope.g0 + scope.g1 + scope.b0 + scope.b1
  if all >= LEAST_CALLS and 2 * bad > all then
    local is_again = scope.span > 0 and moment - scope.shut < math.max(CALM_MS, 2 * scope.span)
    scope.span = is_again and math.min(2 * scope.span, OPEN_CAP_MS) or OPEN_MS
    change(scope, moment + scope.span)
  end
end
