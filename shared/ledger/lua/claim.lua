-- Takes a published chunk: a lease for its worker, and everything the worker needs to work on it.
-- The same token again gets the same answer, or the next round of a chunk that it still holds.
--
-- ARGV: run, chunk, claim token, worker
-- Returns {ok, {}, namespace, suspect, busy, items, anew} · {ok, {}, namespace, suspect, busy, threads, settings of the
--   run if it is a part of a stream: nobody has seen them, and nobody will again} · {status, wakes} with the status
--   gone (nothing to do here), busy (leased or not published), paused, alien (unknown layout),
--   later (postponed: nothing due yet, or the worker holds another suspect), done (all decided; closed)
local id, chunk, token, worker = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local run, record = read_run(id), chunk_key(id, chunk)
local field = call('HMGET', record, 'st', 'own', 'k')
if not run or not field[1] then return {'gone', {}} end
if run.alien then return {'alien', {}} end

local lease, suspect = id .. ' ' .. chunk .. ' ' .. token, (tonumber(field[3]) or 0) >= SUSPECT_STRIKES
local generation, _, _, parts = plan_entry(run, chunk)
local left = undone(run, generation, parts)

if not (field[1] == 'L' and field[2] == token) then
  if field[1] ~= 'P' then return {'busy', {}} end
  if run.state == 'cancelling' then
    drop(run, chunk, left)
    return {'gone', top_up(run.kind, TOP_UP)}
  end
  if run.state == 'paused' then
    to_wait(run, chunk, left)
    return {'paused', top_up(run.kind, TOP_UP)}
  end
  if suspect and call('HSETNX', SUSPECTS_KEY, worker, lease) == 0 then
    to_parked(run, chunk, left, steady() + PARK_MS)
    return {'later', top_up(run.kind, TOP_UP)}
  end
  call('HSET', record, 'st', 'L', 'own', token, 'w', worker, 'at', clock())
  call('ZADD', live_key(run.kind), clock() + LEASE_MS, id .. ' ' .. chunk)
end

if #left == 0 then
  close(run, chunk, left)
  return {'done', top_up(run.kind, TOP_UP)}
end
if run.mailboxes then
  local threads, busy = give_threads(run, lease, left, suspect and 1 or INBOX_DEPTH)
  local settings = call('HEXISTS', run_key(id), 'tells') == 1 and call('HGET', run_key(id), 'snap') or ''
  return {'ok', {}, run.ns, suspect and 1 or 0, busy, threads, settings}
end
local items, earliest = give_items(run, left)
if #items == 0 then
  to_parked(run, chunk, left, earliest)
  return {'later', top_up(run.kind, TOP_UP)}
end
return {'ok', {}, run.ns, suspect and 1 or 0, 0, items, run.retried and asks_anew(id, generation) or 0}
