-- The ledger clock in milliseconds: Redis' time, but never more than SKEW_MS past the last tick.
-- So a frozen server, a fail-over, a stepped clock or an hour without workers ends no lease.
-- uses: CLOCK_KEY, SKEW_MS, now
local ledger_moment
local function clock()
  if not ledger_moment then
    local last = call('HMGET', CLOCK_KEY, 'at', 'lc')
    local passed = now() - (tonumber(last[1]) or 0)
    ledger_moment = (tonumber(last[2]) or 0) + math.max(0, math.min(passed, SKEW_MS))
  end
  return ledger_moment
end
