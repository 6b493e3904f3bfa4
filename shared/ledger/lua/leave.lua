-- Takes a worker that shuts down off the lists, so that nobody counts on it any longer.
--
-- ARGV: worker
-- Returns {ok}
-- uses: KINDS, workers_key, capacity_key, measure_window
for _, kind in ipairs(KINDS) do
  if call('ZREM', workers_key(kind), ARGV[1]) == 1 then
    call('HDEL', capacity_key(kind), ARGV[1])
    measure_window(kind)
  end
end
return {'ok'}
