-- Tells a caller when to come back that will not wait here. Callers get turns one after the other; beyond a
-- crowd they are told to ask again, spread so that never many come at once. A turn is no right: who does not
-- come back costs nothing.
-- uses: LEAD_MS, CROWD_MS, CROWD, LATER_MS, now
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
