-- Renews the permits of the calls in flight of a process for another lease.
--
-- ARGV: scope and permit, per call and scope
-- Returns {ok}
when_full()
for at = 1, #ARGV, 2 do
  call('ZADD', permits_key(ARGV[at]), clock() + LEASE_MS, ARGV[at + 1])
  call('PEXPIRE', permits_key(ARGV[at]), USED_MS)
end
return {'ok'}
