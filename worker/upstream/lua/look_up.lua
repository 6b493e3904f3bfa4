-- Finds the answer to a request; where there is none, one caller of the fleet leads and the others follow.
--
-- ARGV: digest of the request, the caller's token
-- Returns {hit, answer} · {lead}: call the model, then end the lead · {follow}: look again soon
local answer = call('GET', answer_key(ARGV[1]))
if answer then
  call('HINCRBY', CACHE_HITS_KEY, 'hits', 1)
  return {'hit', answer}
end
local flight = call('GET', flight_key(ARGV[1]))
if flight then
  local token, till = string.match(flight, '^(%S+) (%S+)$')
  if token ~= ARGV[2] and tonumber(till) > clock() then return {'follow'} end
end
if not flight then call('HINCRBY', CACHE_HITS_KEY, 'misses', 1) end
call('SET', flight_key(ARGV[1]), ARGV[2] .. ' ' .. string.format('%.0f', clock() + LEASE_MS), 'PX', USED_MS)
return {'lead'}
