-- A call has ended: what it cost replaces what it had reserved.
-- Does nothing for a call without a reservation, so that it may be sent twice.
--
-- ARGV: run, call, cost in billionths of a dollar ('': not known, the reservation stands), model whose answer it
--       is ('': none)
-- Returns {ok} · {gone}
when_full()
local run, id, model = ARGV[1], ARGV[2], ARGV[4]
local key = cost_key(run)
local held = call('HGET', key, 'c:' .. id)
local counted = call('HGET', key, 'x:' .. id)
if not (held or counted) then return {'gone'} end
local cost = ARGV[3] ~= '' and ARGV[3] or held or counted
if held then
  call('HINCRBY', key, 'held', whole(0 - held))
  call('HINCRBY', key, 'spent', cost)
else
  call('HINCRBY', key, 'spent', whole(cost - counted))
end
call('HDEL', key, 'c:' .. id, 'x:' .. id)
call('ZREM', holds_key(run), id)
if model ~= '' and tonumber(cost) > (tonumber(call('HGET', key, 'm:' .. model)) or 0) then
  call('HSET', key, 'm:' .. model, cost)
end
return {'ok'}
