-- Sends a piece of an answer to the process that streams it; drops it where that process does not read.
--
-- ARGV: listener, piece
-- Returns {ok} · {full}
local key = ended_key(ARGV[1])
if call('LLEN', key) >= UNHEARD then return {'full'} end
call('RPUSH', key, ARGV[2])
call('PEXPIRE', key, TOLD_MS)
return {'ok'}
