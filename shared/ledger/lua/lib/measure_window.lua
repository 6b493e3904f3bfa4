-- Sets how many chunks of a kind may be published or leased: a multiple of what its workers can do at a time.
-- uses: capacity_key, pace_key, WINDOW_FLOOR, WINDOW_FACTOR
local function measure_window(kind)
  local total = 0
  for _, capacity in ipairs(call('HVALS', capacity_key(kind))) do total = total + capacity end
  call('HSET', pace_key(kind), 'window', math.max(WINDOW_FLOOR, WINDOW_FACTOR * total))
end
