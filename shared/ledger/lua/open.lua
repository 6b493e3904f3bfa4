-- Begins a run, or finds the one that stands for the same idempotency key.
--
-- ARGV: run, kind, namespace ('' for the run's own), key ('' for none), token of the loader, snapshot,
--       seconds to keep the run once it is final, seconds to keep its namespace once nobody uses it (0: for ever),
--       most chunks that may be under way at a time (0: no limit), how its items lie: mailboxes or list,
--       layout: workers that do not know it leave the run alone, listener that is told when it ends ('': none):
--       such a run is a part of the stream of its namespace, and in no list of runs
-- Returns {ok, run} · {sealed, run, digest}: the key's run is complete · {busy, run}: another loader loads it ·
--         {exists, run}: the id is taken · {namespace, run}: the namespace's name is the id of a run
local id, kind, namespace, key, token = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local known = key ~= '' and call('GET', idem_key(key))
if known and call('EXISTS', run_key(known)) == 1 then
  id = known
  local field = call('HMGET', run_key(id), 'state', 'tok', 'until', 'digest')
  if field[1] ~= 'loading' then return {'sealed', id, field[4] or ''} end
  if field[2] ~= token then
    if tonumber(field[3]) > clock() then return {'busy', id} end
    wipe(id)
  end
elseif call('EXISTS', run_key(id)) == 1 and call('HGET', run_key(id), 'tok') ~= token then
  return {'exists', id}
end

if call('EXISTS', run_key(id)) == 0 then
  if call('EXISTS', positions_key(id), owners_key(id)) > 0 then return {'exists', id} end
  if namespace ~= '' and (namespace == id or call('EXISTS', run_key(namespace)) == 1) then
    return {'namespace', id}
  end
  local created = now()
  call('HSET', run_key(id), 'v', ARGV[11], 'state', 'loading', 'kind', kind, 'storage', ARGV[10],
    'ns', namespace ~= '' and namespace or id, 'key', key, 'tok', token, 'until', clock() + LOADER_MS,
    'gen', 0, 'done', 0, 'goal', 0, 'total', 0, 'created', created, 'snap', ARGV[6], 'ttl', ARGV[7],
    'ns_ttl', namespace ~= '' and ARGV[8] or ARGV[7])
  if ARGV[9] ~= '0' then call('HSET', run_key(id), 'wide', ARGV[9]) end
  call('SADD', BUSY_KEY, id)
  if ARGV[12] == '' then
    call('ZADD', RUNS_KEY, created, id)
  else
    call('HSET', run_key(id), 'tells', ARGV[12])
    call('ZADD', served_open_key(namespace ~= '' and namespace or id), created, id)
  end
  if key ~= '' then call('SET', idem_key(key), id) end
end
return {'ok', id}
