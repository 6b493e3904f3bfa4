-- Removes a run that this loader was loading.
--
-- ARGV: run, token
-- Returns {ok}, also when there is nothing to remove
when_full()
local field = call('HMGET', run_key(ARGV[1]), 'state', 'tok')
if field[1] == 'loading' and field[2] == ARGV[2] then wipe(ARGV[1]) end
return {'ok'}
