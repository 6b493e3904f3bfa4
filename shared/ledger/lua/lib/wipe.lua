-- Removes a run that has no admitted chunk: every key, and its place in every list.
-- uses: run_key, idem_key, run_dead_key, mementos_key, positions_key, requests_key, owners_key, users_key
-- uses: RUNS_KEY, EXPIRING_KEY, BUSY_KEY, OPEN_KEY, DEAD_KEY, DEAD_ITEMS_KEY, run_keys, leave_namespace
-- uses: scope_key, permits_key, SCOPES_KEY
local function wipe(id)
  local field = call('HMGET', run_key(id), 'key', 'ns', 'ns_ttl')
  if field[1] and field[1] ~= '' and call('GET', idem_key(field[1])) == id then
    call('DEL', idem_key(field[1]))
  end
  for _, index in ipairs(call('SMEMBERS', run_dead_key(id))) do
    call('ZREM', DEAD_KEY, id .. ' ' .. index)
    call('HDEL', DEAD_ITEMS_KEY, id .. ' ' .. index)
  end
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
