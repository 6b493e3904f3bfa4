-- A number that was never given out before.
-- uses: CLOCK_KEY
local function serial()
  return call('HINCRBY', CLOCK_KEY, 'seq', 1)
end
