-- Lets a script that frees memory, or writes a few bytes at most, run on a server whose memory is full: Redis refuses
-- such a script at its first write, unless that one needs no memory, and then lets the script do all it does (in
-- every version, where the flag `allow-oom` is one of Redis 7). This write comes first and changes nothing.
-- uses: CLOCK_KEY
local function when_full()
  call('HDEL', CLOCK_KEY, '')
end
