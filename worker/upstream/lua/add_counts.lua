-- Adds a batch of counts to those of the fleet, once: the same batch again changes nothing.
-- The first MOST_UPSTREAMS upstreams are counted under their names, all others together.
--
-- ARGV: process, number of the batch; upstream, counter, amount per count
-- Returns {ok} · {known}: it had been added
local batch = counted_batch_key(ARGV[1])
if call('GET', batch) == ARGV[2] then return {'known'} end
call('SET', batch, ARGV[2], 'PX', USED_MS)

local labels = {}
local function label_of(upstream)
  if not labels[upstream] then
    local is_known = call('SISMEMBER', COUNTED_KEY, upstream) == 1
    if not is_known and call('SCARD', COUNTED_KEY) < MOST_UPSTREAMS then
      is_known = call('SADD', COUNTED_KEY, upstream) == 1
    end
    labels[upstream] = is_known and upstream or 'other'
  end
  return labels[upstream]
end

for at = 3, #ARGV, 3 do
  call('HINCRBY', CALL_COUNTERS_KEY, label_of(ARGV[at]) .. ' ' .. ARGV[at + 1], ARGV[at + 2])
end
return {'ok'}
