-- Writes results of a chunk's items, each once, under the claim token and the item's generation.
--
-- ARGV: run, chunk, claim token, back or keep, delay in ms (0: none), number of rows, tries, tally words;
--       index, generation, value, attempts (0: not for the dead set) per row;
--       index, attempts, ms until the next try, parked state per try; word and amount per tally word
-- Returns {ok, wakes, state of the run, 1 or 0 per row} · {lost, {}}: the chunk is not this worker's any more
local id, chunk = ARGV[1], ARGV[2]
if call('HGET', chunk_key(id, chunk), 'own') ~= ARGV[3] then
  add_count('fenced worker')
  return {'lost', {}}
end
local run, results, redo, tries = read_run(id), results_key(id), redo_key(id), tries_key(id)

-- An item is open for a generation while it is retried, and for the load while it has no result.
local function write(index, generation, value)
  local wanted = run.retried and call('HGET', redo, index)
  if not wanted then return generation == '0' and call('HSETNX', results, index, '0|' .. value) == 1 end
  if wanted ~= generation then return false end
  call('HSET', results, index, generation .. '|' .. value)
  call('HDEL', redo, index)
  return true
end

local at, rows, done = 9, {}, 0
for row = 1, ARGV[6] do
  local index, generation, value, attempts = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  rows[row] = 0
  if write(index, generation, value) then
    rows[row], done = 1, done + 1
    if run.tried then call('HDEL', tries, index) end
    if attempts ~= '0' then
      local payload = call('HGET', items_key(id), index) or ''
      bury(id, index, run.kind, generation, attempts, '', payload, value)
    elseif generation ~= '0' then
      unbury(id, index)
    end
  end
  at = at + 4
end

if ARGV[7] ~= '0' and not run.tried then call('HSET', run_key(id), 'tried', 1) end
for _ = 1, ARGV[7] do
  local due = string.format('%.0f', steady() + ARGV[at + 2])
  call('HSET', tries, ARGV[at], ARGV[at + 1] .. '|' .. due .. '|' .. ARGV[at + 3])
  at = at + 4
end

if done > 0 then call('HINCRBY', run_key(id), 'done', done) end
if done > 0 or ARGV[6] == '0' then -- without rows there are costs to count, of items that come back
  for word = at, at + 2 * ARGV[8] - 1, 2 do
    call('HINCRBY', run_key(id), 'n:' .. ARGV[word], ARGV[word + 1])
    count_outcome(run.kind, ARGV[word], ARGV[word + 1])
  end
end
local wakes = ARGV[4] == 'back' and finish_commit(run, chunk, tonumber(ARGV[5])) or {}
return {'ok', wakes, run.state, rows}
