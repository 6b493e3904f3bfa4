-- Publishes waiting chunks while the window of their kind has room; the runs take turns.
-- A wake-up counts as lost after a multiple of the usual chunk time: a long queue is no loss.
-- uses: ring_key, live_key, wait_key, plan_key, chunk_key, WINDOW_KEY, USUAL_KEY, WINDOW_FLOOR, OVERDUE_MS
-- uses: OVERDUE_FACTOR, clock, serial, read_run, admit, add_wake
local function publish(run, chunk, overdue, wakes)
  local record, entry = chunk_key(run.id, chunk), call('HGET', plan_key(run.id), chunk)
  if call('EXISTS', record) == 0 then admit(run, chunk, entry) end
  call('HSET', record, 'st', 'P', 'pub', 0)
  call('ZADD', live_key(run.kind), clock() + overdue, run.id .. ' ' .. chunk)
  add_wake(wakes, run, chunk, entry)
end

local function top_up(kind, most)
  local wakes, ring = {}, ring_key(kind)
  local window = tonumber(call('HGET', WINDOW_KEY, kind)) or WINDOW_FLOOR
  local room, skipped, overdue = math.min(window - call('ZCARD', live_key(kind)), most), 0, nil
  while room > 0 do
    local id = call('ZRANGE', ring, skipped, skipped)[1]
    if not id then break end
    local run = read_run(id)
    if run and run.alien then
      skipped = skipped + 1
    else
      local chunk = run and run.state == 'running' and call('ZPOPMIN', wait_key(id))[1]
      if chunk then
        overdue = overdue
          or math.max(OVERDUE_MS, OVERDUE_FACTOR * (tonumber(call('HGET', USUAL_KEY, kind)) or 0))
        publish(run, chunk, overdue, wakes)
        room = room - 1
      end
      if chunk and call('EXISTS', wait_key(id)) == 1 then
        call('ZADD', ring, serial(), id)
      else
        call('ZREM', ring, id)
      end
    end
  end
  return wakes
end
