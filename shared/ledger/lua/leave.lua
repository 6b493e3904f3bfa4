-- Takes a worker that shuts down, or that is known to be dead, off the lists: nobody counts on it any longer.
--
-- ARGV: worker, 1 when it gave no wake-ups back to the broker that it may have fetched, else 0
-- Returns {ok}
-- uses: KINDS, workers_key, capacity_key, measure_window, repeat_wakes
for _, kind in ipairs(KINDS) do
  if call('ZREM', workers_key(kind), ARGV[1]) == 1 then
    call('HDEL', capacity_key(kind), ARGV[1])
    measure_window(kind)
    if ARGV[2] == '1' then repeat_wakes(kind) end
  end
end
return {'ok'}
