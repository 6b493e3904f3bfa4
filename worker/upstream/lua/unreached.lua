-- A call of a run could not reach an endpoint: is it worth trying again?
--
-- An endpoint is given up when it has answered no call of the run, REFUSALS calls could not reach it, and no other
-- call to it is under way. The latter may be that of another worker, with a route that this one lacks; while it
-- waits for its answer, nothing is decided, unless the server itself said 404. An answer, whoever gets it, takes
-- the decision back.
-- The hash of a run's contacts, by endpoint:
--   ok:ENDPOINT     there, when it has answered
--   n:ENDPOINT      calls that could not reach it, before it answered
--   last:ENDPOINT   the last of them, so that a call that is reported twice counts once
--   gone:ENDPOINT   there, when it is given up
--
-- ARGV: run, endpoint, scope in which its calls have their permits (the caller still holds its own), call,
--       1 if the server said that there is nothing
-- Returns {answered} · {again}: not decided · {absent}: it is given up
local key, endpoint = contacts_key(ARGV[1]), ARGV[2]
local field = call('HMGET', key, 'ok:' .. endpoint, 'gone:' .. endpoint, 'n:' .. endpoint, 'last:' .. endpoint)
if field[1] then return {'answered'} end
if field[2] then return {'absent'} end
local times = tonumber(field[3]) or 0
if field[4] ~= ARGV[4] then
  times = times + 1
  call('HSET', key, 'n:' .. endpoint, times, 'last:' .. endpoint, ARGV[4])
  end_with_run(ARGV[1], key)
end
local from = '(' .. string.format('%.0f', clock())
local under_way = call('ZRANGEBYSCORE', permits_key(ARGV[3]), from, '+inf', 'LIMIT', 0, 2)
if times < REFUSALS or (#under_way > 1 and ARGV[5] ~= '1') then return {'again'} end
call('HSET', key, 'gone:' .. endpoint, 1)
return {'absent'}
