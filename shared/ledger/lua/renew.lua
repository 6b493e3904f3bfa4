-- Renews the leases of a worker, all in one call.
--
-- ARGV: run, chunk, claim token, per lease
-- Returns for each the state of its run, or lost
when_full()
local answers = {}
for at = 1, #ARGV, 3 do
  local id, chunk, answer = ARGV[at], ARGV[at + 1], 'lost'
  if call('HGET', chunk_key(id, chunk), 'own') == ARGV[at + 2] then
    local field = call('HMGET', run_key(id), 'state', 'kind')
    call('ZADD', live_key(field[2]), clock() + LEASE_MS, id .. ' ' .. chunk)
    answer = field[1]
  end
  answers[#answers + 1] = answer
end
return answers
