-- A call has ended: gives its permits back, and updates limits, adaptive number and breaker.
-- Does nothing for a permit that is not held any more, so that it may be sent twice.
--
-- ARGV: permit, health (ok, busy, slow, unhealthy, unreached, unknown), latency in ms, era as given by acquire (-1: no breaker),
--       ms of pause that the upstream asked for (0: none), number of scopes;
--       per scope: name, ms to add to what its tokens took of the limit (the estimate was too low; < 0: too high)
-- Returns {ok} · {gone}
-- uses: when_full, permits_key, PAUSE_CAP_MS, now, read_scope, write_scope, adapt, count_result
when_full()
local permit, health, era, pause = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local state, is_held
for at = 7, 5 + 2 * ARGV[6], 2 do
  local name, more = ARGV[at], tonumber(ARGV[at + 1])
  local was = call('ZREM', permits_key(name), permit) == 1
  if at == 7 then is_held = was end
  if is_held and (at == 7 or more ~= 0) then
    state = read_scope(name)
    if more ~= 0 then state.tt, state.tl = math.max(0, state.tt + more), math.max(0, state.tl + more) end
    if at == 7 then
      if pause > 0 then state.pause = math.max(state.pause, now() + math.min(pause, PAUSE_CAP_MS)) end
      adapt(state, health, tonumber(ARGV[3]), call('ZCARD', permits_key(name)))
      -- Busy means that it works; unknown means nothing; unreached concerns only a breaker that is open.
      local is_counted = health ~= 'busy' and health ~= 'unknown' and (health ~= 'unreached' or state.open > 0)
      if is_counted then count_result(state, era, health == 'ok') end
    end
    write_scope(name, state)
  end
end
return {is_held and 'ok' or 'gone'}
