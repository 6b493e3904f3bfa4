-- Turns in the inboxes of threads: put in, handed out under the thread's lock, taken out, or poison.

-- Reads a thread's position and the number of turns done of its front batch.
local function position(text)
  if not text then return 0, 0 end
  local at, offset = string.match(text, '^(%d+) (%d+)$')
  return tonumber(at), tonumber(offset)
end

-- The generation of a batch is in its id: '17.3' is of the load, '2.5.3' of retry generation 2.
local function batch_generation(batch)
  return string.match(batch, '^(%d+)%.%d+%.%d+$') or '0'
end

-- The chunk that a batch is of: '17' of '17.3'. One that was taken apart is not found by it.
local function chunk_of(batch)
  return string.match(batch, '^(.*)%.%d+$')
end

-- Whether a generation of a run asks models again, whatever answers are stored: 1 or 0.
local function asks_anew(id, generation)
  local anew = call('HGET', run_key(id), 'anew')
  return anew and string.find(anew, ' ' .. generation .. ' ', 1, true) and 1 or 0
end

-- Reads one turn out of a batch (`shared.codecs.turn_batches`): its index in the input and its line.
local function batch_turn(payload, at)
  local from = string.find(payload, '\n', 1, true)
  local index, seen, first = nil, 0, string.match(payload, '^(%d+)-')
  if first then
    index = string.format('%.0f', first + at)
  else
    for number in string.gmatch(string.sub(payload, 1, from), '%d+') do
      if seen == at then index = number end
      seen = seen + 1
    end
  end
  for _ = 1, at do from = string.find(payload, '\n', from + 1, true) end
  local to = string.find(payload, '\n', from + 1, true)
  return index, string.sub(payload, from + 1, to and to - 1)
end

-- The first publication of a chunk: from now on it has a record, and its turns stand in the inboxes.
local function admit(run, entry)
  local _, _, _, parts = cmsgpack.unpack(entry)
  for _, part in ipairs(parts) do
    call('RPUSH', inbox_key(run.ns, part[2]), run.id .. ' ' .. part[1] .. ' ' .. part[3])
  end
end

-- Locks the free threads among those of a chunk for the chunk's lease; returns the names of those that it has
-- now, and how many are held elsewhere.
local function lock_threads(run, lease, left)
  local names, seen, mine, locks = {}, {}, {}, {}
  for _, part in ipairs(left) do
    if not seen[part[2]] then names[#names + 1], seen[part[2]] = part[2], true end
  end
  for at, owner in ipairs(call('HMGET', owners_key(run.ns), unpack(names))) do
    if not owner then locks[#locks + 1], locks[#locks + 2] = names[at], lease end
    if not owner or owner == lease then mine[#mine + 1] = names[at] end
  end
  if #locks > 0 then call('HSET', owners_key(run.ns), unpack(locks)) end
  return mine, #names - #mine
end

-- Locks the free threads among those of a chunk for the chunk's lease, and reads what a worker needs of each:
-- {name, 'position offset', state, run, batch, count, payload, anew, run, …}. Also counts the threads held elsewhere.
local function give_threads(run, lease, left, depth)
  local names, busy = lock_threads(run, lease, left)
  if #names == 0 then return {}, busy end
  local positions = call('HMGET', positions_key(run.ns), unpack(names))
  local states = call('HMGET', mementos_key(run.ns), unpack(names))
  local threads, batches, places = {}, {}, {}
  for at, name in ipairs(names) do
    local thread = {name, positions[at] or '0 0', states[at] or ''}
    for _, ref in ipairs(call('LRANGE', inbox_key(run.ns, name), 0, depth - 1)) do
      local id, batch, count = string.match(ref, '^(%S+) (%S+) (%d+)$')
      local size, generation = #thread, batch_generation(batch)
      thread[size + 1], thread[size + 2], thread[size + 3], thread[size + 4] = id, batch, count, ''
      thread[size + 5] = generation == '0' and 0 or asks_anew(id, generation)
      if not batches[id] then batches[id], places[id] = {}, {} end
      local number = #batches[id] + 1
      batches[id][number], places[id][number] = batch, {thread, size + 4}
    end
    threads[at] = thread
  end
  for id, wanted in pairs(batches) do
    local payloads = fetch(items_key(id), wanted)
    for number, place in ipairs(places[id]) do place[1][place[2]] = payloads[number] or '' end
  end
  return threads, busy
end

-- Counts the marks of turns that already have a result (see `plan_entry`), in all and by their outcome.
local function marked(marks, letters)
  local number = 0
  for letter in string.gmatch(marks, '[^0]') do
    number, letters[letter] = number + 1, (letters[letter] or 0) + 1
  end
  return number
end

-- Turns that will not be decided again after all: the run has that much less to do.
local function forget_turns(run, marks)
  local letters = {}
  local redone = marked(marks, letters)
  if redone > 0 then call('HINCRBY', run_key(run.id), 'goal', -redone) end
  move_outcomes(run.id, letters, 1)
end

-- Takes turns that were given up out of the inboxes; a change of an inbox's front moves the thread's position.
local function withdraw(run, left)
  for _, part in ipairs(left) do
    local thread, ref, marks = part[2], run.id .. ' ' .. part[1] .. ' ' .. part[3], part[4]
    local box = inbox_key(run.ns, thread)
    local at, offset = position(call('HGET', positions_key(run.ns), thread))
    if call('LINDEX', box, 0) == ref then
      marks, offset = string.sub(marks, offset + 1), 0
    end
    call('LREM', box, 1, ref)
    call('HSET', positions_key(run.ns), thread, at + 1 .. ' ' .. offset)
    forget_turns(run, marks)
  end
end

-- Writes the error of the turn at a thread's front (of whichever run it is): no worker survived it.
-- Its block holds the thread's stored state in place of a result.
local function poison_turn(namespace, thread, strikes)
  local box, positions = inbox_key(namespace, thread), positions_key(namespace)
  local id, batch, count = string.match(call('LINDEX', box, 0), '^(%S+) (%S+) (%d+)$')
  local kind = call('HGET', run_key(id), 'kind')
  local at, offset = position(call('HGET', positions, thread))
  local index, line = batch_turn(call('HGET', items_key(id), batch), offset)
  local generation, moment = batch_generation(batch), string.format('%.0f', now())
  local last = offset + 1 == tonumber(count)
  local block = table.concat({offset, moment, moment, index, 'x0p'}, '|') .. '\n'
    .. (call('HGET', mementos_key(namespace), thread) or '')
  call('HSET', results_key(id), last and batch or batch .. ':' .. offset, generation .. '|' .. block)
  call('HINCRBY', run_key(id), 'done', 1)
  call('HINCRBY', run_key(id), 'n:error', 1)
  add_count('items ' .. kind .. ' error')
  add_count('steward ' .. kind .. ' item_poisoned')
  if last then call('LPOP', box) end
  call('HSET', positions, thread, at + 1 .. ' ' .. (last and 0 or offset + 1))
  bury(id, index, kind, generation, strikes, 'poison', line, '')
end
