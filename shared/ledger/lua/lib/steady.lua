-- Redis' time plus all that it was ever set back: what is put off for a second stays put off for a second.
-- A step forward makes it due early, which does no harm. Goes on while nobody ticks, unlike the ledger clock.
-- uses: CLOCK_KEY, now
local steady_moment
local function steady()
  if not steady_moment then steady_moment = now() + (tonumber(call('HGET', CLOCK_KEY, 'back')) or 0) end
  return steady_moment
end
