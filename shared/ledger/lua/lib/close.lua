-- Ends a chunk of which nothing is left, or whose rest was given up (`left` may still hold threads).
-- uses: chunk_key, plan_key, wait_key, admitted_key, USUAL_KEY, clock, unlease, settle
local function close(run, chunk, left)
  local claimed_at = unlease(run, chunk, left or {})
  if claimed_at and not left then
    local took = math.max(0, clock() - claimed_at)
    local usual = tonumber(call('HGET', USUAL_KEY, run.kind)) or took
    call('HSET', USUAL_KEY, run.kind, math.floor((7 * usual + took) / 8))
  end
  call('UNLINK', chunk_key(run.id, chunk))
  call('SREM', admitted_key(run.id), chunk)
  call('ZREM', wait_key(run.id), chunk)
  call('HDEL', plan_key(run.id), chunk)
  settle(run)
end
