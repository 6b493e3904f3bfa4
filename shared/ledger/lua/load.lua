-- Writes a part of a loading run; writing the same part again changes nothing. Renews the loader's lease.
--
-- ARGV: run, token, number of items, chunks, batch counts, threads;
--       index and payload per item; chunk and plan entry per chunk; chunk and batches per batch count; threads
-- Returns {ok, items of the run so far} · {fenced}: the run is not this loader's any more
local id = ARGV[1]
local field = call('HMGET', run_key(id), 'state', 'tok')
if field[1] ~= 'loading' or field[2] ~= ARGV[2] then
  add_count('fenced loader')
  return {'fenced'}
end

local at = 7
local function write(command, key, values)
  if values > 0 then call(command, key, unpack(ARGV, at, at + values - 1)) end
  at = at + values
end

write('HSET', items_key(id), 2 * ARGV[3])
local places = {}
for chunk = at, at + 2 * ARGV[4] - 1, 2 do
  places[#places + 1] = order(ARGV[chunk])
  places[#places + 1] = ARGV[chunk]
end
if #places > 0 then call('ZADD', wait_key(id), unpack(places)) end
write('HSET', plan_key(id), 2 * ARGV[4])
write('HSET', batches_key(id), 2 * ARGV[5])
write('SADD', threads_key(id), tonumber(ARGV[6]))
call('HSET', run_key(id), 'until', clock() + LOADER_MS)
return {'ok', call('HLEN', items_key(id))}
