-- Writes what a worker decided for threads of a chunk, each thread as a whole or not at all.
-- With `hold` the threads stay locked: the worker goes on with them, without claiming them again. With `await` the
-- chunk is given back and postponed until one of its threads is released by others, for the delay at most.
--
-- ARGV: run, chunk, claim token, back, await, keep or hold, delay in ms (0: none), number of tally entries, of threads;
--       run, word, amount per tally entry; then for all threads their names, their positions, their new states,
--       their numbers of parts, their numbers of requests; then per thread
--       offset, count, '0|' and value, positions of dead turns ('3,5' or '') per part; id and value per request.
--       (The value is kilobytes: written as of generation 0, it is copied once less in the common case.)
-- Returns {ok, wakes, state of the run, 1 or 0 per thread} · {lost, {}}: the chunk is not this worker's any more
local id, chunk, token = ARGV[1], ARGV[2], ARGV[3]
local record = chunk_key(id, chunk)
local field = call('HMGET', record, 'own', 'k')
if field[1] ~= token then
  add_count('fenced worker')
  return {'lost', {}}
end

local run, lease = read_run(id), id .. ' ' .. chunk .. ' ' .. token
local tallies, threads = tonumber(ARGV[6]), tonumber(ARGV[7])
local first = 8 + 3 * tallies
local at = first + 5 * threads
local owners, versions = {}, {}
if threads > 0 then
  owners = call('HMGET', owners_key(run.ns), unpack(ARGV, first, first + threads - 1))
  versions = call('HMGET', positions_key(run.ns), unpack(ARGV, first, first + threads - 1))
end

local results, done = {}, {}
local new_positions, new_states, unlocked, accepted = {}, {}, {}, {}
local has_parked, parked = call('EXISTS', parked_key(run.kind)) == 1, {}

-- Writes the parts of one thread; they follow its inbox from the front. Returns its new position.
local function take_parts(thread, from, parts, moved)
  local box, rest = inbox_key(run.ns, thread), 0
  for part = from, from + 4 * parts - 1, 4 do
    local offset, count = tonumber(ARGV[part]), tonumber(ARGV[part + 1])
    local ref = call('LPOP', box)
    local of, batch, size = string.match(ref, '^(%S+) (%S+) (%d+)$')
    local generation, name = batch_generation(batch), batch
    if offset + count < tonumber(size) then
      call('LPUSH', box, ref)
      name, rest = batch .. ':' .. offset, offset + count
    end
    if has_parked then parked[#parked + 1] = of .. ' ' .. chunk_of(batch) end
    if not results[of] then results[of], done[of] = {}, 0 end
    local rows = results[of]
    rows[#rows + 1] = name
    rows[#rows + 1] = generation == '0' and ARGV[part + 2] or generation .. string.sub(ARGV[part + 2], 2)
    done[of], moved = done[of] + count, moved + count
    if ARGV[part + 3] ~= '' or generation ~= '0' then
      account_dead(of, batch, generation, offset, ARGV[part + 2], ARGV[part + 3])
    end
  end
  return moved .. ' ' .. rest
end

-- The first thread to commit a request's id wins; the others are computed again with its answer.
local function take_requests(from, requests)
  if requests == 0 then return true end
  local known, values = requests_key(run.ns), {}
  for request = from, from + 2 * requests - 1, 2 do values[#values + 1] = ARGV[request] end
  for _, taken in ipairs(call('HMGET', known, unpack(values))) do
    if taken then return false end
  end
  call('HSET', known, unpack(ARGV, from, from + 2 * requests - 1))
  return true
end

for number = 0, threads - 1 do
  local thread = ARGV[first + number]
  local parts = tonumber(ARGV[first + 3 * threads + number])
  local requests = tonumber(ARGV[first + 4 * threads + number])
  local version, expected = position(versions[number + 1]), tonumber(ARGV[first + threads + number])
  accepted[number + 1] = 0
  if owners[number + 1] == lease and version == expected and take_requests(at + 4 * parts, requests) then
    accepted[number + 1] = 1
    new_positions[#new_positions + 1] = thread
    new_positions[#new_positions + 1] = take_parts(thread, at, parts, version)
    new_states[#new_states + 1] = thread
    new_states[#new_states + 1] = ARGV[first + 2 * threads + number]
    if ARGV[4] ~= 'hold' then unlocked[#unlocked + 1] = thread end
  end
  at = at + 4 * parts + 2 * requests
end

if #new_positions > 0 then
  sliced('HSET', positions_key(run.ns), new_positions)
  sliced('HSET', mementos_key(run.ns), new_states)
  if #unlocked > 0 then sliced('HDEL', owners_key(run.ns), unlocked) end
  for of, rows in pairs(results) do
    sliced('HSET', results_key(of), rows)
    call('HINCRBY', run_key(of), 'done', done[of])
  end
  for tally = 8, first - 1, 3 do
    if done[ARGV[tally]] then
      call('HINCRBY', run_key(ARGV[tally]), 'n:' .. ARGV[tally + 1], ARGV[tally + 2])
      count_outcome(run.kind, ARGV[tally + 1], ARGV[tally + 2])
    end
  end
  if (tonumber(field[2]) or 0) > SUSPECT_STRIKES then call('HSET', record, 'k', SUSPECT_STRIKES) end
end
local is_woken, wakes = has_parked and wake_awaiting(run, unlocked, parked), {}
if ARGV[4] == 'back' or ARGV[4] == 'await' then
  wakes = finish_commit(run, chunk, tonumber(ARGV[5]), ARGV[4] == 'await')
elseif is_woken then
  wakes = top_up(run.kind, TOP_UP)
end
return {'ok', wakes, run.state, accepted}
