-- Moves the adaptive number of calls at a time: a little more after each good one (1/n), BACK_OFF of it when in a
-- round trip more than the share OVERLOAD was turned away or timed out; once a round trip, never below one.
-- A few refusals among many answers are no sign of load, and cost no throughput. A round trip ends with as many
-- answers as there were calls under way, or by time.
-- uses: BACK_OFF, OVERLOAD, ROUND_MS, FEW, SPARSE_MS, ADAPTIVE_CAP, SMOOTHING, now
local function end_round(scope, in_use)
  if scope.wbad > OVERLOAD * (scope.wok + scope.wbad) then
    local used = math.max(1, scope.peak)
    scope.cwnd = math.max(1, BACK_OFF * (scope.cwnd > 0 and math.min(scope.cwnd, used) or used))
  end
  scope.wat, scope.wok, scope.wbad, scope.peak = 0, 0, 0, in_use
end

local function adapt(scope, health, latency, in_use)
  if health ~= 'ok' and health ~= 'busy' and health ~= 'slow' then return end
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
