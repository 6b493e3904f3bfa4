-- The window of published chunks of a kind, and the ring of runs that take turns to fill it.

-- Sets how many chunks of a kind may be published or leased: a multiple of what its workers can do at a time.
local function measure_window(kind)
  local total = 0
  for _, capacity in ipairs(call('HVALS', capacity_key(kind))) do total = total + capacity end
  call('HSET', pace_key(kind), 'window', math.max(WINDOW_FLOOR, WINDOW_FACTOR * total))
end

-- Lets a run take its turn at being published, behind all others, when it has chunks that wait.
local function join_ring(run)
  if run.state == 'running' and call('EXISTS', wait_key(run.id)) == 1
    and not call('ZSCORE', ring_key(run.kind), run.id) then
    call('ZADD', ring_key(run.kind), serial(), run.id)
  end
end

-- Appends the wake-up of a chunk, five values, to the list that the caller of the script will publish.
local function add_wake(wakes, run, chunk, entry)
  local _, _, first, count = cmsgpack.unpack_limit(entry, 3)
  local size = #wakes
  wakes[size + 1], wakes[size + 2], wakes[size + 3] = run.kind, run.id, chunk
  wakes[size + 4], wakes[size + 5] = count, first
end

-- Publishes a chunk; a wake-up counts as lost after `overdue` ms.
local function publish(run, chunk, overdue, wakes)
  local record, entry = chunk_key(run.id, chunk), call('HGET', plan_key(run.id), chunk)
  if call('SADD', admitted_key(run.id), chunk) == 1 and run.mailboxes then admit(run, entry) end
  call('HSET', record, 'st', 'P', 'pub', 0, 'since', clock())
  call('ZADD', live_key(run.kind), clock() + overdue, run.id .. ' ' .. chunk)
  add_wake(wakes, run, chunk, entry)
end

-- Whether a run of limited width has as many chunks under way as it may. Those that are put aside do not count, up
-- to a multiple of the width, and those that came back count by what is left of them; of a run with a width of one
-- all do in full, because its items have an order.
local function is_full(run)
  local admitted = call('SCARD', admitted_key(run.id))
  if admitted < run.wide then return false end
  if run.wide == 1 or admitted >= ASIDE_FACTOR * run.wide then return true end
  local under_way = 0
  for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do
    local field = call('HMGET', chunk_key(run.id, chunk), 'st', 'rest')
    if field[1] ~= 'D' then under_way = under_way + (tonumber(field[2]) or PERCENT) end
  end
  return under_way >= PERCENT * run.wide
end

-- The next chunk of a run. Of a run of limited width the next one is begun only when one has ended or was put
-- aside; chunks that were begun come first by their order.
local function next_chunk(run)
  local wait = wait_key(run.id)
  if not run.wide then return call('ZPOPMIN', wait)[1] end
  local chunk = call('ZRANGE', wait, 0, 0)[1]
  if not chunk then return nil end
  if call('SISMEMBER', admitted_key(run.id), chunk) == 0 and is_full(run) then return nil end
  call('ZREM', wait, chunk)
  return chunk
end

-- Publishes waiting chunks while the window of their kind is not full; the runs take turns.
-- A wake-up counts as lost after a multiple of the usual chunk time: a long queue is no loss.
local function top_up(kind, most)
  local wakes, ring, pace = {}, ring_key(kind), call('HMGET', pace_key(kind), 'window', 'usual')
  local overdue = math.max(OVERDUE_MS, OVERDUE_FACTOR * (tonumber(pace[2]) or 0))
  local free = math.min((tonumber(pace[1]) or WINDOW_FLOOR) - call('ZCARD', live_key(kind)), most)
  local skipped = 0
  while free > 0 do
    local ids = call('ZRANGE', ring, skipped, skipped + 1)
    local id = ids[1]
    if not id then break end
    local run = read_run(id)
    local chunk = run and run.state == 'running' and not run.alien and next_chunk(run)
    if chunk then
      publish(run, chunk, overdue, wakes)
      free = free - 1
      if ids[2] then call('ZADD', ring, serial(), id) end -- to the end, unless it is alone
    elseif run and run.alien then
      skipped = skipped + 1
    else
      call('ZREM', ring, id)
    end
  end
  return wakes
end
