-- The circuit breaker hears how a call ended that began in its present era.
--   closed     opens when of at least LEAST_CALLS calls in two buckets more than half are bad
--   open       no call is let through, so none ends
--   half-open  the first good probe closes it, the first bad one opens it for twice as long
-- uses: BUCKET_MS, LEAST_CALLS, OPEN_MS, OPEN_CAP_MS, CALM_MS, now
local function change(scope, open)
  scope.open, scope.era, scope.pn, scope.pt = open, scope.era + 1, 0, 0
  scope.bw, scope.g0, scope.b0, scope.g1, scope.b1 = 0, 0, 0, 0, 0
end

local function count_result(scope, era, is_good)
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
  if moment - scope.bw >= BUCKET_MS then
    local is_next = moment - scope.bw < 2 * BUCKET_MS
    scope.g1, scope.b1 = is_next and scope.g0 or 0, is_next and scope.b0 or 0
    scope.g0, scope.b0, scope.bw = 0, 0, moment
  end
  if is_good then
    scope.g0 = scope.g0 + 1
    return
  end
  scope.b0 = scope.b0 + 1
  local bad, all = scope.b0 + scope.b1, scope.g0 + scope.g1 + scope.b0 + scope.b1
  if all >= LEAST_CALLS and 2 * bad > all then
    local is_again = scope.span > 0 and moment - scope.shut < math.max(CALM_MS, 2 * scope.span)
    scope.span = is_again and math.min(2 * scope.span, OPEN_CAP_MS) or OPEN_MS
    change(scope, moment + scope.span)
  end
end
