-- Removes threads of a namespace that no open run uses, or all of it. A thread goes in the state in which it was read,
-- so that no turn goes which was decided since, and no answer to a request stays.
--
-- ARGV: namespace, number of threads (0: the whole namespace), thread and its state as it was read (empty: there was
--   none), …, clientRequestIds that they answered…
-- Returns {ok, threads that were removed} · {no, a run that uses it} · {changed, a thread in another state}
local ns, count = ARGV[1], tonumber(ARGV[2])
local user = call('SMEMBERS', users_key(ns))[1]
if user then return {'no', user} end
if count == 0 then
  local gone = call('HLEN', mementos_key(ns))
  call('UNLINK', owners_key(ns), positions_key(ns), mementos_key(ns), requests_key(ns))
  return {'ok', gone}
end
local first_request = 3 + 2 * count
for at = 3, first_request - 1, 2 do
  local state = call('HGET', mementos_key(ns), ARGV[at])
  if state and state ~= ARGV[at + 1] then return {'changed', ARGV[at]} end
end
local gone = 0
for at = 3, first_request - 1, 2 do
  gone = gone + call('HDEL', mementos_key(ns), ARGV[at])
  call('HDEL', positions_key(ns), ARGV[at])
end
for at = first_request, #ARGV do call('HDEL', requests_key(ns), ARGV[at]) end
return {'ok', gone}
