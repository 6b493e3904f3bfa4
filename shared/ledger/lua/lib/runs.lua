-- Runs as a whole: their fields, their keys, their end, and the namespaces that they use.

-- The states in which nothing of a run changes any more.
local is_final = {finished = true, cancelled = true, aborted = true, incomplete = true}

-- The fields of a run that functions use; nil when there is no such run. `retried` and `tried`: whether items
-- were ever retried, or parked; most runs have neither, and those keys are not read. `wide`: the most chunks that
-- may be under way at a time, nil for no limit. `mailboxes`: whether its items lie in the inboxes of threads and
-- not under their index; a run that was opened by version 0.1 has no such field, its kind decides.
local function read_run(id)
  local field = call('HMGET', run_key(id), 'state', 'kind', 'ns', 'v', 'gen', 'tried', 'wide', 'storage')
  if not field[1] then return nil end
  return {
    id = id, state = field[1], kind = field[2], ns = field[3], alien = (tonumber(field[4]) or LAYOUT + 1) > LAYOUT,
    retried = field[5] ~= '0', tried = field[6], wide = tonumber(field[7]),
    layout = tonumber(field[4]), mailboxes = field[8] == 'mailboxes' or not field[8] and field[2] == 'turns',
  }
end

-- All keys of a run but its chunk records, which end with their chunks.
local function run_keys(id)
  return {
    run_key(id), items_key(id), plan_key(id), wait_key(id), admitted_key(id), results_key(id), redo_key(id),
    tries_key(id), batches_key(id), threads_key(id), run_dead_key(id), cost_key(id), holds_key(id),
    contacts_key(id), labels_key(id),
  }
end

-- A namespace that an open run uses does not expire.
local function use_namespace(run)
  call('SADD', users_key(run.ns), run.id)
  for _, key in ipairs({positions_key(run.ns), mementos_key(run.ns), requests_key(run.ns)}) do
    call('PERSIST', key)
  end
end

-- Takes a run off the users of its namespace, whose time to live counts from the end of the last one.
local function leave_namespace(namespace, id, ttl_s)
  local was_user = call('SREM', users_key(namespace), id) == 1
  if not was_user or ttl_s <= 0 or call('EXISTS', users_key(namespace)) == 1 then return end
  local at = string.format('%.0f', now() + ttl_s * 1000)
  for _, key in ipairs({positions_key(namespace), mementos_key(namespace), requests_key(namespace)}) do
    call('PEXPIREAT', key, at)
  end
end

-- Lets all keys of a run expire at the same moment; a tick then removes it from the lists of runs and dead items.
local function expire_together(run, key, ttl_s)
  local at = string.format('%.0f', now() + ttl_s * 1000)
  for _, name in ipairs(run_keys(run.id)) do call('PEXPIREAT', name, at) end
  if key ~= '' then call('PEXPIREAT', idem_key(key), at) end
  call('ZADD', EXPIRING_KEY, at, run.id)
end

-- Ends a run that has no open chunk: finished when every item has a result, else the state that was asked for.
local function settle(run)
  if call('EXISTS', plan_key(run.id)) == 1 then return end
  local field = call('HMGET', run_key(run.id), 'done', 'goal', 'to', 'key', 'ttl', 'ns_ttl', 'tells')
  local complete = field[1] == field[2] and run.state ~= 'cancelling'
  run.state = complete and 'finished' or field[3] or 'incomplete'
  call('HSET', run_key(run.id), 'state', run.state, 'finished', now())
  add_count('runs ' .. run.kind .. ' ' .. run.state)
  call('ZREM', ring_key(run.kind), run.id)
  call('SREM', BUSY_KEY, run.id)
  call('SREM', OPEN_KEY, run.id)
  call('UNLINK', tries_key(run.id), contacts_key(run.id))
  local ttl_s = tonumber(field[5])
  if ttl_s > 0 then expire_together(run, field[4], ttl_s) end
  leave_namespace(run.ns, run.id, tonumber(field[6]))
  if field[7] then
    call('RPUSH', ended_key(field[7]), run.id)
    call('PEXPIREAT', ended_key(field[7]), string.format('%.0f', now() + TOLD_MS))
  end
end

-- Removes a run that has no admitted chunk: every key, and its place in every list.
local function wipe(id)
  local field = call('HMGET', run_key(id), 'key', 'ns', 'ns_ttl')
  if field[1] and field[1] ~= '' and call('GET', idem_key(field[1])) == id then
    call('DEL', idem_key(field[1]))
  end
  for _, index in ipairs(call('SMEMBERS', run_dead_key(id))) do
    call('ZREM', DEAD_KEY, id .. ' ' .. index)
    call('HDEL', DEAD_ITEMS_KEY, id .. ' ' .. index)
  end
  if field[2] then call('ZREM', served_open_key(field[2]), id) end
  if field[2] and field[2] ~= id then leave_namespace(field[2], id, tonumber(field[3])) end
  call('UNLINK', owners_key(id), positions_key(id), mementos_key(id), requests_key(id), users_key(id))
  call('UNLINK', unpack(run_keys(id)))
  call('UNLINK', scope_key('run:' .. id), permits_key('run:' .. id))
  call('ZREM', SCOPES_KEY, 'run:' .. id)
  call('ZREM', RUNS_KEY, id)
  call('ZREM', EXPIRING_KEY, id)
  call('SREM', BUSY_KEY, id)
  call('SREM', OPEN_KEY, id)
end
