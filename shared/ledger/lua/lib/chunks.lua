-- Chunks of a run: what they are made of, and how they wait, are put aside, end, or are given up.

-- Where a chunk stands in its run: '17' from the load, '2.5' of retry generation 2, '17/3' taken apart.
local function order(chunk)
  local base = string.match(chunk, '^[^/]*')
  local generation, number = string.match(base, '^(%d+)%.(%d+)$')
  if generation then return generation * 1e9 + number end
  return tonumber(base)
end

-- What a chunk is made of: generation, what it begins with, number of items, parts.
-- A part is an index, or for turns {batch, thread, count, again}; `again` marks each turn with the outcome of the
-- result that it already has, or with 0, and is empty when none has one.
local function plan_entry(run, chunk)
  return cmsgpack.unpack(call('HGET', plan_key(run.id), chunk))
end

-- Those parts of a chunk that still have no result of the chunk's generation.
local function undone(run, generation, parts)
  local left, results = {}, results_key(run.id)
  if run.mailboxes then
    for _, part in ipairs(parts) do
      if call('HEXISTS', results, part[1]) == 0 then left[#left + 1] = part end
    end
    return left
  end
  local generations = run.retried and call('HMGET', redo_key(run.id), unpack(parts)) or {}
  for at, index in ipairs(parts) do
    if generations[at] then
      if tonumber(generations[at]) == generation then left[#left + 1] = index end
    elseif call('HEXISTS', results, index) == 0 then
      left[#left + 1] = index
    end
  end
  return left
end

-- Gives back the threads of the parts `left` that a lease holds.
local function release_threads(run, left, lease)
  local names, mine = {}, {}
  for at, part in ipairs(left) do names[at] = part[2] end
  if #names == 0 then return end
  for at, owner in ipairs(call('HMGET', owners_key(run.ns), unpack(names))) do
    if owner == lease then mine[#mine + 1] = names[at] end
  end
  if #mine > 0 then call('HDEL', owners_key(run.ns), unpack(mine)) end
end

-- Ends the lease of a chunk, if it has one, with everything that belongs to the lease: its threads (of the
-- parts `left`) and its mark as the worker's suspect. Takes the chunk out of the sets of its kind.
-- Returns when it was claimed (nil: it was not leased) and its state; the caller updates the record itself.
local function unlease(run, chunk, left)
  local record, member = chunk_key(run.id, chunk), run.id .. ' ' .. chunk
  local field = call('HMGET', record, 'st', 'own', 'w', 'at', 'k')
  if field[1] == 'L' then
    local lease = member .. ' ' .. field[2]
    if run.mailboxes then release_threads(run, left, lease) end
    local suspect = (tonumber(field[5]) or 0) >= SUSPECT_STRIKES
    if suspect and call('HGET', SUSPECTS_KEY, field[3]) == lease then call('HDEL', SUSPECTS_KEY, field[3]) end
  end
  if field[1] == 'D' then
    call('ZREM', parked_key(run.kind), member)
  elseif field[1] ~= 'W' then
    call('ZREM', live_key(run.kind), member)
  end
  return field[4], field[1]
end

-- Puts a chunk back among those that wait, at its place in the run.
local function to_wait(run, chunk, left)
  local record = chunk_key(run.id, chunk)
  local claimed_at, state = unlease(run, chunk, left)
  if claimed_at then call('HDEL', record, 'own', 'w', 'at') end
  if state == 'D' then call('HDEL', record, 'awaits') end
  call('HSET', record, 'st', 'W')
  call('ZADD', wait_key(run.id), order(chunk), chunk)
  join_ring(run)
end

-- Puts a chunk aside until a moment of the steady clock, or with `awaits` until a thread of its is released, if that
-- is earlier. A run of limited width had left the ring when it was full; when the chunk comes back, it counts by the
-- items that it still has.
local function to_parked(run, chunk, left, due, awaits)
  local record = chunk_key(run.id, chunk)
  if unlease(run, chunk, left) then call('HDEL', record, 'own', 'w', 'at') end
  call('HSET', record, 'st', 'D')
  if awaits then call('HSET', record, 'awaits', 1) end
  call('ZADD', parked_key(run.kind), due, run.id .. ' ' .. chunk)
  if not run.wide then return end
  local _, _, _, parts = plan_entry(run, chunk)
  call('HSET', record, 'rest', math.ceil(PERCENT * #left / #parts))
  join_ring(run)
end

-- Ends a chunk of which nothing is left, or whose rest was given up (`left` may still hold threads).
-- A run of limited width had left the ring when it was full.
local function close(run, chunk, left)
  local claimed_at, state = unlease(run, chunk, left or {})
  if claimed_at and not left then
    local took, known = math.max(0, clock() - claimed_at), tonumber(call('HGET', pace_key(run.kind), 'usual'))
    local usual = math.floor((7 * (known or took) + took) / 8)
    if usual ~= known then call('HSET', pace_key(run.kind), 'usual', usual) end
  end
  call('UNLINK', chunk_key(run.id, chunk))
  call('SREM', admitted_key(run.id), chunk)
  if state == 'W' then call('ZREM', wait_key(run.id), chunk) end
  call('HDEL', plan_key(run.id), chunk)
  settle(run)
  if run.wide then join_ring(run) end
end

-- Gives up what is left of an admitted chunk and ends it.
local function drop(run, chunk, left)
  if run.mailboxes then withdraw(run, left) else forget_redo(run, left) end
  close(run, chunk, left)
end

-- Undoes a retry for chunks that are given up: their order is above 1e9.
local function take_back(run, admitted)
  for _, chunk in ipairs(call('ZRANGEBYSCORE', wait_key(run.id), 1e9, '+inf')) do
    if not admitted[chunk] then
      local _, _, _, parts = plan_entry(run, chunk)
      if run.mailboxes then
        for _, part in ipairs(parts) do forget_turns(run, part[4]) end
      else
        forget_redo(run, parts)
      end
    end
  end
end

-- Gives up all chunks that were never handed out, at once: a million of them are two keys to unlink.
local function drop_waiting(run)
  local wait, plan, entries = wait_key(run.id), plan_key(run.id), {}
  for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do entries[chunk] = call('HGET', plan, chunk) end
  take_back(run, entries)
  call('UNLINK', wait, plan)
  for chunk, entry in pairs(entries) do
    call('HSET', plan, chunk, entry)
    if call('HGET', chunk_key(run.id, chunk), 'st') == 'W' then call('ZADD', wait, order(chunk), chunk) end
  end
  settle(run)
end

-- Gives up to BULK chunks that were handed out and are not leased just now.
local function drop_admitted(run)
  local dropped = 0
  for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do
    if dropped == BULK then return end
    if call('HGET', chunk_key(run.id, chunk), 'st') ~= 'L' then
      local generation, _, _, parts = plan_entry(run, chunk)
      drop(run, chunk, undone(run, generation, parts))
      dropped = dropped + 1
    end
  end
end

-- Whether all threads of a chunk's parts are held by leases of other chunks.
local function are_held(run, chunk, left)
  local names, own = {}, run.id .. ' ' .. chunk .. ' '
  for at, part in ipairs(left) do names[at] = part[2] end
  for _, owner in ipairs(call('HMGET', owners_key(run.ns), unpack(names))) do
    if not owner or string.sub(owner, 1, #own) == own then return false end
  end
  return true
end

-- The worker gives the chunk back: ended when nothing is left, else it waits, or is postponed by `delay` ms, with
-- `awaits` only while others hold all its threads.
local function finish_commit(run, chunk, delay, awaits)
  local generation, _, _, parts = plan_entry(run, chunk)
  local left = undone(run, generation, parts)
  if #left == 0 then
    close(run, chunk)
  elseif run.state == 'cancelling' then
    drop(run, chunk, left)
  elseif delay > 0 and not (awaits and not are_held(run, chunk, left)) then
    to_parked(run, chunk, left, steady() + delay, awaits)
  else
    to_wait(run, chunk, left)
  end
  return top_up(run.kind, TOP_UP)
end
