-- Renews the leads of a process for another lease.
--
-- ARGV: digest and token, per lead
-- Returns {ok}
when_full()
for at = 1, #ARGV, 2 do
  local flight = call('GET', flight_key(ARGV[at]))
  if flight and string.match(flight, '^%S+') == ARGV[at + 1] then
    call('SET', flight_key(ARGV[at]), ARGV[at + 1] .. ' ' .. string.format('%.0f', clock() + LEASE_MS), 'PX', USED_MS)
  end
end
return {'ok'}
