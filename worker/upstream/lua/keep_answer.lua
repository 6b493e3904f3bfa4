-- Ends a lead: its answer is kept, the first one that comes, and another caller may lead where there is none.
--
-- ARGV: digest of the request, the leader's token, answer ('': none), seconds to keep it
-- Returns {kept} · {left}
local flight = call('GET', flight_key(ARGV[1]))
if flight and string.match(flight, '^%S+') == ARGV[2] then call('DEL', flight_key(ARGV[1])) end
if ARGV[3] == '' or not call('SET', answer_key(ARGV[1]), ARGV[3], 'EX', ARGV[4], 'NX') then return {'left'} end
call('HINCRBY', CACHE_HITS_KEY, 'stored', 1)
return {'kept'}
