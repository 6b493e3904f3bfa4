-- Removes a worker that shuts down, or that is known to be dead, from the lists of live workers.
--
-- ARGV: worker, 1 when it is dead or ends without giving back what it has, else 0
-- Returns {ok}
when_full()
for _, kind in ipairs(KINDS) do
  if call('ZREM', workers_key(kind), ARGV[1]) == 1 then
    call('HDEL', capacity_key(kind), ARGV[1])
    call('HDEL', layouts_key(kind), ARGV[1])
    measure_window(kind)
    if ARGV[2] == '1' then repeat_wakes(kind, ARGV[1]) end
  end
end
return {'ok'}
