-- What a tick does for one kind: forgets dead workers, ends leases that ran out, repeats wake-ups that are
-- overdue, and lets delayed chunks wait again when they are due.
-- uses: workers_key, capacity_key, live_key, parked_key, chunk_key, BULK, steady, clock, read_run, plan_entry
-- uses: undone, expire, to_wait, wake_again, measure_window, repeat_wakes
local function parse(member)
  return string.match(member, '^(%S+) (%S+)$')
end

local function forget_dead_workers(kind)
  local gone = call('ZRANGEBYSCORE', workers_key(kind), '-inf', clock())
  for _, worker in ipairs(gone) do
    call('ZREM', workers_key(kind), worker)
    call('HDEL', capacity_key(kind), worker)
  end
  if #gone > 0 then repeat_wakes(kind) end
end

local function wait_again(run, chunk)
  local generation, _, _, parts = plan_entry(run, chunk)
  to_wait(run, chunk, undone(run, generation, parts))
end

local function heal(kind, wakes)
  forget_dead_workers(kind)
  measure_window(kind)
  for _, member in ipairs(call('ZRANGEBYSCORE', live_key(kind), '-inf', clock(), 'LIMIT', 0, BULK)) do
    local id, chunk = parse(member)
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
    local id, chunk = parse(member)
    local run = read_run(id)
    if run and not run.alien then wait_again(run, chunk) end
  end
end
