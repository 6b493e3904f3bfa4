-- Reserves what a call may cost, if the run's cap still covers it.
--
-- How long an answer gets is often only guessed. A guess that does not fit any more may go when nothing else is
-- reserved, if there is room for the dearest answer so far: near the cap calls go one at a time, and no call of
-- usual length is refused because the guess is too high.
--
-- ARGV: run, call, cost as estimated, the least it costs ('': the estimate is no guess), cap, model
--       (costs in billionths of a dollar)
-- Returns {ok} · {wait}: something is reserved that may end up cheaper · {over, spent, cap}
local run, id, amount, least = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local key = cost_key(run)
if call('HEXISTS', key, 'c:' .. id) == 1 or call('HEXISTS', key, 'x:' .. id) == 1 then return {'ok'} end
expire_reservations(run)

local field = call('HMGET', key, 'cap', 'spent', 'held', 'm:' .. ARGV[6], 'over')
local cap, spent, held = tonumber(field[1] or ARGV[5]), tonumber(field[2]) or 0, tonumber(field[3]) or 0
local left = cap - spent - held
if amount > left and held == 0 and least and math.max(least, tonumber(field[4]) or 0) <= left then amount = left end

if amount > left then
  if held > 0 then return {'wait'} end
  call('HSET', key, 'over', whole(amount))
  end_with_run(run, key, holds_key(run))
  return {'over', whole(spent), whole(cap)}
end
if field[5] then call('HDEL', key, 'over') end
call('HSET', key, 'c:' .. id, whole(amount))
call('HINCRBY', key, 'held', whole(amount))
call('ZADD', holds_key(run), clock() + LEASE_MS, id)
end_with_run(run, key, holds_key(run))
return {'ok'}
