-- Whether a run has given up all of some endpoints.
--
-- ARGV: run, endpoints ...
-- Returns {absent} · {some}: at least one of them may still answer
for at = 2, #ARGV do
  if call('HEXISTS', contacts_key(ARGV[1]), 'gone:' .. ARGV[at]) == 0 then return {'some'} end
end
return {'absent'}
