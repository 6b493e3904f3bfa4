-- Repeats the wake-up of a published chunk, and doubles the time until it counts as lost again.
-- uses: chunk_key, live_key, plan_key, pace_key, OVERDUE_MS, OVERDUE_FACTOR, MOST_DOUBLINGS, clock, add_wake, add_count
local function wake_again(run, chunk, member, wakes)
  local record = chunk_key(run.id, chunk)
  local repeated = math.min(call('HGET', record, 'pub') + 1, MOST_DOUBLINGS)
  local usual = tonumber(call('HGET', pace_key(run.kind), 'usual')) or 0
  local pause = math.max(OVERDUE_MS, OVERDUE_FACTOR * usual) * 2 ^ repeated
  call('HSET', record, 'pub', repeated, 'since', clock())
  call('ZADD', live_key(run.kind), clock() + pause, member)
  add_wake(wakes, run, chunk, call('HGET', plan_key(run.id), chunk))
  add_count('steward ' .. run.kind .. ' wake_repeated')
end
