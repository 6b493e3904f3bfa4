-- Ends a chunk of which nothing is left, or whose rest was given up (`left` may still hold threads).
-- A run of limited width had left the ring when it was full.
-- uses: chunk_key, plan_key, wait_key, admitted_key, pace_key, clock, unlease, settle, join_ring
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
