-- An endpoint has answered a call of a run: from now on a failure to reach it is taken for a passing one.
--
-- ARGV: run, endpoint
-- Returns {ok}
local key, endpoint = contacts_key(ARGV[1]), ARGV[2]
call('HSET', key, 'ok:' .. endpoint, 1)
call('HDEL', key, 'gone:' .. endpoint, 'n:' .. endpoint, 'last:' .. endpoint)
end_with_run(ARGV[1], key)
return {'ok'}
