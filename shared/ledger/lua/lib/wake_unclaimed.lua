-- Repeats wake-ups that nobody has claimed for a while, for a worker that has nothing to do: had they been in its
-- queue, it would have taken them. Looks at the newest first, since leases end sooner than wake-ups are overdue.
-- uses: live_key, chunk_key, BULK, UNCLAIMED_MS, clock, read_run, wake_again
local function wake_unclaimed(kind, wakes)
  for _, member in ipairs(call('ZREVRANGE', live_key(kind), 0, BULK - 1)) do
    local id, chunk = string.match(member, '^(%S+) (%S+)$')
    local field = call('HMGET', chunk_key(id, chunk), 'st', 'since', 'pub')
    if field[1] == 'P' and field[2] and clock() - field[2] >= UNCLAIMED_MS * 2 ^ field[3] then
      local run = read_run(id)
      if run and not run.alien and run.state == 'running' then wake_again(run, chunk, member, wakes) end
    end
  end
end
