-- Ends a run that has no open chunk: finished when every item has a result, else the state that was asked for.
-- All its keys expire at the same moment; a tick then takes it off the lists of runs and dead items.
-- uses: run_key, plan_key, ring_key, tries_key, idem_key, BUSY_KEY, OPEN_KEY, EXPIRING_KEY, now, run_keys
-- uses: leave_namespace, add_count
local function expire_together(run, key, ttl_s)
  local at = string.format('%.0f', now() + ttl_s * 1000)
  for _, name in ipairs(run_keys(run.id)) do call('PEXPIREAT', name, at) end
  if key ~= '' then call('PEXPIREAT', idem_key(key), at) end
  call('ZADD', EXPIRING_KEY, at, run.id)
end

local function settle(run)
  if call('EXISTS', plan_key(run.id)) == 1 then return end
  local field = call('HMGET', run_key(run.id), 'done', 'goal', 'to', 'key', 'ttl', 'ns_ttl')
  local complete = field[1] == field[2] and run.state ~= 'cancelling'
  run.state = complete and 'finished' or field[3] or 'incomplete'
  call('HSET', run_key(run.id), 'state', run.state, 'finished', now())
  add_count('runs ' .. run.kind .. ' ' .. run.state)
  call('ZREM', ring_key(run.kind), run.id)
  call('SREM', BUSY_KEY, run.id)
  call('SREM', OPEN_KEY, run.id)
  call('UNLINK', tries_key(run.id))
  local ttl_s = tonumber(field[5])
  if ttl_s > 0 then expire_together(run, field[4], ttl_s) end
  leave_namespace(run.ns, run.id, tonumber(field[6]))
end
