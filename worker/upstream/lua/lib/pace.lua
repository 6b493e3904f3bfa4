-- The pace that an endpoint's refusals teach, where nobody told us its limit; and whether it refuses everybody.

-- Sends more slowly: at the pace that went well before, at the rate at which calls were served, or half as fast.
local function slow_down(scope, was, back, served)
  local half = math.max(was, math.min(2 * was, PACE_FLOOR_MS))
  local is_known = back > 0 or served <= 2 * was
  if back == 0 then scope.good = 0 end
  scope.pace = back > 0 and math.min(back, served) or is_known and served or half
  scope.hold = is_known and math.min(PACE_HOLD_CAP, math.max(PACE_HOLD, 2 * scope.hold)) or 0
  scope.held = 0
end

-- Sends faster after enough rounds that went well: a little where a limit was found, else twice as fast.
local function speed_up(scope, share)
  scope.held = scope.held + 1
  if share <= PACE_FEW then scope.good = scope.pace end
  if scope.held <= scope.hold then return end
  scope.pace = scope.pace / (scope.hold > 0 and PACE_GAIN or 2)
  if scope.pace < PACE_LEAST_MS then scope.pace, scope.good, scope.hold, scope.held = 0, 0, 0, 0 end
end

-- Learns from a call that was answered or refused; returns how long the endpoint is paused, if that begins.
-- Nothing is kept of an endpoint that refuses nothing.
--   a refusal       binds its call. The endpoint is paused, as that refusal asks, when of the calls that were sent
--                   since the first refusal that no served call followed more than half, and at least FEW, were
--                   refused; or ALONE of them, no other call is under way and
--                   no pace is learned.
--   a round         is a second, a round trip and PACE_CALLS calls (fewer if none was refused). When more than the
--                   share OVERLOAD of it was refused, calls are spaced. With more than PACE_FEW, a faster try is
--                   given up, and a pace that went well before is lowered once, to what was served: refusals that
--                   stay are not due to the pace. Calls that were sent before a change of pace do not count.
local function learn_pace(scope, health, number, in_use, pause)
  if health ~= 'busy' and (health ~= 'ok' or scope.since == 0) then return end
  if number <= scope.cut then return end
  local moment = now()
  if scope.since == 0 then scope.since, scope.n0 = moment, scope.n - in_use - 1 end
  if health == 'ok' then
    scope.served = scope.served + 1
    if number > scope.row then scope.row = 0 end
  else
    scope.refused = scope.refused + 1
    if scope.row == 0 then scope.row, scope.rowbad = number, 0 end
    scope.rowbad = scope.rowbad + 1
  end
  local is_most = health == 'busy' and 2 * scope.rowbad > scope.n + 1 - scope.row
  local is_general, paused = is_most and scope.rowbad >= FEW, nil
  local is_alone = is_most and scope.pace == 0 and in_use == 0 and scope.rowbad >= ALONE
  if pause > 0 and (is_general or is_alone) then
    scope.pause = math.max(scope.pause, moment + math.min(pause, PAUSE_CAP_MS))
    paused = scope.pause - moment
    scope.since, scope.row = scope.since + paused, 0
  end
  local passed = math.max(1, moment - scope.since)
  local calls = math.max(scope.served + scope.refused, scope.n - scope.n0)
  local is_enough = calls >= PACE_CALLS or (scope.refused == 0 and (calls >= FEW or scope.hold == 0))
  local is_round = is_enough and passed >= math.max(PACE_ROUND_MS, scope.rtt)
  if not is_general and not is_round then return paused end
  local share, was = scope.refused / calls, scope.pace
  if was == 0 then was = math.max(passed, PACE_ROUND_MS) / calls end
  local back = scope.good > was and scope.good or 0
  local is_measured = is_round and calls > scope.refused
  local served = is_measured and math.max(was, passed / (calls - scope.refused)) or math.huge
  if is_general or share > OVERLOAD or (share > PACE_FEW and back > 0) then
    slow_down(scope, was, back, served)
    scope.cut = scope.n
  elseif share > PACE_FEW and scope.good > 0 then
    scope.pace, scope.good, scope.cut = served, 0, scope.n
  elseif scope.pace > 0 and calls * scope.pace >= PACE_USED * passed then
    speed_up(scope, share)
  end
  scope.since = scope.pace > 0 and math.max(moment, scope.pause) or 0
  scope.served, scope.refused, scope.n0, scope.row = 0, 0, scope.n, 0
  return paused
end
