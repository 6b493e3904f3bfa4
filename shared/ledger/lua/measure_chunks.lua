-- Counts those of some chunks that are leased, for metrics; reads only.
--
-- ARGV: run, chunk, per chunk
-- Returns how many are leased
-- uses: chunk_key
local leased = 0
for at = 1, #ARGV, 2 do
  if call('HGET', chunk_key(ARGV[at], ARGV[at + 1]), 'st') == 'L' then leased = leased + 1 end
end
return leased
