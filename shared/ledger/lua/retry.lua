-- Puts items of a run back to work, in chunks of a new generation; a final run runs again.
-- Turns go to the end of their threads and need a final run, so that no turn is retried twice at a time.
-- Of other kinds those items are taken that have a result and are not being retried already; in a final run also
-- those that never had one.
--
-- ARGV: run, operation (the same one again changes nothing), generation of the results that led to this ('': any),
--       number of chunks, anew ('' when stored answers will do); per chunk what it begins with and its number of parts; per part an index, or for turns
--       thread, count, marks (see plan_entry), payload
-- Returns {ok, wakes} · {none}: nothing to retry · {changed}: another retry came between · {no, state} ·
--         {no, forgotten}: its texts were forgotten · {no, part}: of a stream, which has each turn once · {unknown}
local run = read_run(ARGV[1])
if not run then return {'unknown'} end
local field = call('HMGET', run_key(run.id), 'op', 'gen', 'key', 'finished', 'anew', 'forgot', 'tells')
if field[6] then return {'no', 'forgotten'} end
if field[7] then return {'no', 'part'} end
if run.alien or run.state == 'loading' or run.state == 'cancelling' then return {'no', run.state} end
if field[1] == ARGV[2] then return {'ok', top_up(run.kind, TOP_UP)} end
local over = is_final[run.state]
if run.mailboxes and not over then return {'no', run.state} end
if ARGV[3] ~= '' and ARGV[3] ~= field[2] then return {'changed'} end

local generation, chunks, redone, at, letters = field[2] + 1, 0, 0, 6, {}
local items, redo, results = items_key(run.id), redo_key(run.id), results_key(run.id)

local function add_chunk(first, count, parts)
  if #parts == 0 then return end
  local chunk = generation .. '.' .. chunks
  chunks = chunks + 1
  call('HSET', plan_key(run.id), chunk, cmsgpack.pack(generation, first, count, parts))
  call('ZADD', wait_key(run.id), order(chunk), chunk)
  if run.mailboxes then call('HSET', batches_key(run.id), chunk, #parts) end
end

local function add_turns(first, number)
  local parts, total = {}, 0
  for part = 1, number do
    local batch = generation .. '.' .. chunks .. '.' .. part - 1
    local count, marks = tonumber(ARGV[at + 1]), ARGV[at + 2]
    parts[part], total = {batch, ARGV[at], count, marks}, total + count
    call('HSET', items, batch, ARGV[at + 3])
    redone, at = redone + marked(marks, letters), at + 4
  end
  add_chunk(first, total, parts)
end

local function add_items(first, number)
  local parts = {}
  for _ = 1, number do
    local index = ARGV[at]
    if call('HEXISTS', items, index) == 1 and call('HEXISTS', redo, index) == 0 then
      local result = call('HGET', results, index)
      if over or result then
        parts[#parts + 1] = index
        call('HSET', redo, index, generation)
      end
      if result then
        local letter = outcome_of(result)
        redone, letters[letter] = redone + 1, (letters[letter] or 0) + 1
      end
    end
    at = at + 1
  end
  add_chunk(first, #parts, parts)
end

for _ = 1, ARGV[4] do
  local first, number = ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  if run.mailboxes then add_turns(first, number) else add_items(first, number) end
end
if chunks == 0 then return {'none'} end

call('HSET', run_key(run.id), 'gen', generation, 'op', ARGV[2])
call('HINCRBY', run_key(run.id), 'goal', redone)
move_outcomes(run.id, letters, -1)
-- Which generations ask models anew; those before the end of a run have no chunks left.
if ARGV[5] ~= '' then
  call('HSET', run_key(run.id), 'anew', (not over and field[5] or ' ') .. generation .. ' ')
end
if over then
  run.state = 'running'
  call('HINCRBY', run_key(run.id), 'idle', now() - field[4])
  call('HSET', run_key(run.id), 'state', 'running', 'again', now())
  call('HDEL', run_key(run.id), 'finished')
  for _, key in ipairs(run_keys(run.id)) do call('PERSIST', key) end
  if field[3] ~= '' then call('PERSIST', idem_key(field[3])) end
  call('ZREM', EXPIRING_KEY, run.id)
  call('SADD', OPEN_KEY, run.id)
  use_namespace(run)
end
join_ring(run)
return {'ok', top_up(run.kind, TOP_UP)}
