-- Removes threads of a namespace that no open run uses, or all of it.
--
-- ARGV: namespace, number of threads (0: the whole namespace), threads…, clientRequestIds that they answered…
-- Returns {ok, threads that were removed} · {no, a run that uses it}
local ns, count = ARGV[1], tonumber(ARGV[2])
local user = call('SMEMBERS', users_key(ns))[1]
if user then return {'no', user} end
if count == 0 then
  local gone = call('HLEN', mementos_key(ns))
  call('UNLINK', owners_key(ns), positions_key(ns), mementos_key(ns), requests_key(ns))
  return {'ok', gone}
end
local gone = 0
for at = 3, 2 + count do
  gone = gone + call('HDEL', mementos_key(ns), ARGV[at])
  call('HDEL', positions_key(ns), ARGV[at])
end
for at = 3 + count, #ARGV do call('HDEL', requests_key(ns), ARGV[at]) end
return {'ok', gone}
