-- What the steward's tick repairs: expired leases, lost wake-ups, dead workers.

-- Takes a chunk apart into chunks of one part each, all of them suspects.
local function explode(run, chunk, generation, first, left)
  for at, part in ipairs(left) do
    local piece, label, count = chunk .. '/' .. at - 1, first, 1
    if run.mailboxes then
      label, count = part[2], part[3]
    elseif at > 1 then
      label = first .. ' +' .. at - 1
    end
    call('HSET', plan_key(run.id), piece, cmsgpack.pack(generation, label, tonumber(count), {part}))
    call('HSET', chunk_key(run.id, piece), 'st', 'W', 'k', SUSPECT_STRIKES)
    call('SADD', admitted_key(run.id), piece)
    call('ZADD', wait_key(run.id), order(piece), piece)
  end
  unlease(run, chunk, left)
  call('UNLINK', chunk_key(run.id, chunk))
  call('SREM', admitted_key(run.id), chunk)
  call('HDEL', plan_key(run.id), chunk)
  join_ring(run)
  add_count('steward ' .. run.kind .. ' chunk_split')
end

-- Counts one more lease of a chunk that ran out, and returns how many there were.
local function strike(run, chunk, left)
  local record = chunk_key(run.id, chunk)
  local field = call('HMGET', record, 'own', 'k')
  local strikes = tonumber(field[2]) or 0
  if run.mailboxes and #left == 1 then
    -- A chunk that waited for its only thread did not work on it.
    local lease = run.id .. ' ' .. chunk .. ' ' .. field[1]
    if call('HGET', owners_key(run.ns), left[1][2]) ~= lease then return strikes end
  end
  call('HSET', record, 'k', strikes + 1)
  return strikes + 1
end

-- Ends an expired lease: its worker is dead, or did not renew it in time.
local function expire(run, chunk)
  local generation, first, _, parts = plan_entry(run, chunk)
  local left = undone(run, generation, parts)
  add_count('steward ' .. run.kind .. ' lease_ended')
  if #left == 0 or run.state == 'cancelling' then return drop(run, chunk, left) end
  local strikes = strike(run, chunk, left)
  if #left > 1 and strikes >= SUSPECT_STRIKES then
    return explode(run, chunk, generation, first, left)
  end
  if #left == 1 and strikes >= POISON_STRIKES then
    if run.mailboxes then
      poison_turn(run.ns, left[1][2], strikes)
      call('HSET', chunk_key(run.id, chunk), 'k', SUSPECT_STRIKES)
    else
      poison_item(run, left[1], generation, strikes)
    end
    if #undone(run, generation, parts) == 0 then return close(run, chunk, left) end
  end
  to_wait(run, chunk, left)
end

-- Makes due at the next tick what a process that died may have taken with it. These are all unclaimed wake-ups of
-- the kind, since it may have fetched some (those that were still in the queue come twice, which does no harm), and
-- the leases of `worker`, for a worker that is known to be dead, and not only silent.
local function repeat_wakes(kind, worker)
  for _, member in ipairs(call('ZRANGE', live_key(kind), 0, -1)) do
    local id, chunk = string.match(member, '^(%S+) (%S+)$')
    local field = call('HMGET', chunk_key(id, chunk), 'st', 'w')
    if field[1] == 'P' or (worker and field[2] == worker) then
      call('ZADD', live_key(kind), clock(), member)
    end
  end
end

-- Repeats the wake-up of a published chunk, and doubles the time until it counts as lost again.
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

-- Whether some live workers do not support the layout of a run: they take its wake-ups, and do nothing.
local function has_outdated(run)
  if run.layout == FIRST_LAYOUT then return false end
  local current = 0
  for _, layout in ipairs(call('HVALS', layouts_key(run.kind))) do
    if tonumber(layout) >= run.layout then current = current + 1 end
  end
  return current < call('ZCARD', workers_key(run.kind))
end

-- Repeats wake-ups that nobody has claimed for a while, for a worker that has nothing to do: had they been in its
-- queue, it would have taken them. Looks at the newest first, since leases end sooner than wake-ups are overdue.
-- The time doubles with each repetition, unless outdated workers take them away.
local function wake_unclaimed(kind, wakes)
  for _, member in ipairs(call('ZREVRANGE', live_key(kind), 0, BULK - 1)) do
    local id, chunk = string.match(member, '^(%S+) (%S+)$')
    local field = call('HMGET', chunk_key(id, chunk), 'st', 'since', 'pub')
    local waits = field[1] == 'P' and field[2] and clock() - field[2] or 0
    if waits >= UNCLAIMED_MS then
      local run = read_run(id)
      if run and not run.alien and run.state == 'running'
        and (waits >= UNCLAIMED_MS * 2 ^ field[3] or has_outdated(run)) then
        wake_again(run, chunk, member, wakes)
      end
    end
  end
end

-- The run and the chunk that a member of a sorted set of chunks names.
local function run_and_chunk(member)
  return string.match(member, '^(%S+) (%S+)$')
end

-- Removes workers from the lists that have not registered for a lease, and repeats what they may have fetched.
local function forget_dead_workers(kind)
  local gone = call('ZRANGEBYSCORE', workers_key(kind), '-inf', clock())
  for _, worker in ipairs(gone) do
    call('ZREM', workers_key(kind), worker)
    call('HDEL', capacity_key(kind), worker)
    call('HDEL', layouts_key(kind), worker)
  end
  if #gone > 0 then repeat_wakes(kind) end
end

-- Puts a chunk whose wake-up is not wanted any more, or whose delay is over, back among those that wait.
local function wait_again(run, chunk)
  local generation, _, _, parts = plan_entry(run, chunk)
  to_wait(run, chunk, undone(run, generation, parts))
end

-- Lets chunks wait again that were put aside for threads which are released now: `chunks`, of which turns were
-- decided just now, and those that have turns at the front of `threads`. Returns whether there are any.
local function wake_awaiting(run, threads, chunks)
  for _, thread in ipairs(threads) do
    local id, batch = string.match(call('LINDEX', inbox_key(run.ns, thread), 0) or '', '^(%S+) (%S+) ')
    if id then chunks[#chunks + 1] = id .. ' ' .. chunk_of(batch) end
  end
  local is_woken = false
  for _, member in ipairs(chunks) do
    local id, chunk = run_and_chunk(member)
    local of = call('HEXISTS', chunk_key(id, chunk), 'awaits') == 1 and read_run(id)
    if of and not of.alien then
      wait_again(of, chunk)
      is_woken = true
    end
  end
  return is_woken
end

-- What a tick does for one kind: removes dead workers, ends leases that ran out, repeats wake-ups that are
-- overdue, and lets delayed chunks wait again when they are due.
local function heal(kind, wakes)
  forget_dead_workers(kind)
  measure_window(kind)
  for _, member in ipairs(call('ZRANGEBYSCORE', live_key(kind), '-inf', clock(), 'LIMIT', 0, BULK)) do
    local id, chunk = run_and_chunk(member)
    local run = read_run(id)
    -- An entry may have ended with its run while this loop was at an earlier one.
    if run and not run.alien and call('ZSCORE', live_key(kind), member) then
      if call('HGET', chunk_key(id, chunk), 'st') == 'L' then
        expire(run, chunk)
      elseif run.state ~= 'running' then
        wait_again(run, chunk)
      else
        wake_again(run, chunk, member, wakes)
      end
    end
  end
  for _, member in ipairs(call('ZRANGEBYSCORE', parked_key(kind), '-inf', steady(), 'LIMIT', 0, BULK)) do
    local id, chunk = run_and_chunk(member)
    local run = read_run(id)
    if run and not run.alien then wait_again(run, chunk) end
  end
end
