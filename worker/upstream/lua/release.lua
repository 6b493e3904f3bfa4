-- A call has ended: gives its permits back, and updates limits, pace, pause, adaptive number and breaker.
-- Does nothing for a permit that is not held any more, so that it may be sent twice.
--
-- ARGV: permit, health (ok, busy, slow, unhealthy, unreached, unknown), latency in ms, era (-1: no breaker) and number as given by acquire,
--       ms that the upstream asked the call to wait (0: none), number of scopes;
--       per scope: name, ms to add to what its tokens took of the limit (the estimate was too low; < 0: too high)
-- Returns {ok} · {gone} · {paused, ms}: from now on no call is made for so long
when_full()
local permit, health, era = ARGV[1], ARGV[2], tonumber(ARGV[4])
local number, pause = tonumber(ARGV[5]), tonumber(ARGV[6])
local state, is_held, paused
for at = 8, 6 + 2 * ARGV[7], 2 do
  local name, more = ARGV[at], tonumber(ARGV[at + 1])
  local was = call('ZREM', permits_key(name), permit) == 1
  if at == 8 then is_held = was end
  if is_held and (at == 8 or more ~= 0) then
    state = read_scope(name)
    if more ~= 0 then state.tt, state.tl = math.max(0, state.tt + more), math.max(0, state.tl + more) end
    if at == 8 then
      local latency, in_use = tonumber(ARGV[3]), call('ZCARD', permits_key(name))
      adapt(state, health, latency, in_use)
      paused = learn_pace(state, health, number, in_use, pause)
      -- Busy means that it works; unknown means nothing; unreached concerns only a breaker that is open.
      local is_counted = health ~= 'busy' and health ~= 'unknown' and (health ~= 'unreached' or state.open > 0)
      if is_counted then count_result(state, era, health == 'ok') end
    end
    write_scope(name, state)
  end
end
if paused then return {'paused', math.ceil(paused)} end
return {is_held and 'ok' or 'gone'}
