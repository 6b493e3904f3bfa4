-- Renews the reservations of the calls in flight of a process for another lease.
--
-- ARGV: run and call, per call
-- Returns {ok}
when_full()
for at = 1, #ARGV, 2 do
  call('ZADD', holds_key(ARGV[at]), 'XX', clock() + LEASE_MS, ARGV[at + 1])
end
return {'ok'}
