-- The stream of a namespace: turns that `proctor serve` took, once their micro-run has ended.
--
-- An entry has a batch, the turns of one thread in one micro-run. Its id is the time when it was added, and the number
-- of its last turn, which counts the turns of the stream. Its fields: `a` when each turn was accepted, epoch
-- milliseconds; `i` its input, `r` its result, and `r:4` the earlier part of it that begins with the turn 4, as in
-- the run (`shared.codecs.turn_batches`).

-- Reads a hash.
local function read_hash(key)
  local found, flat = {}, call('HGETALL', key)
  for at = 1, #flat, 2 do found[flat[at]] = flat[at + 1] end
  return found
end

-- Reads the numbers that `pack_indexes` wrote: '3-5' or '3,5'.
local function indexes_of(text)
  local found, first, last = {}, string.match(text, '^(%d+)-(%d+)$')
  if first then
    for index = tonumber(first), tonumber(last) do found[#found + 1] = index end
  else
    for index in string.gmatch(text, '%d+') do found[#found + 1] = tonumber(index) end
  end
  return found
end

-- Reads the batches of a run, in their order: when its turns were accepted, by their index and in the order of the
-- batch; input; names and values of results. A run that was ended has turns without one.
local function batches_of(id)
  local field = call('HMGET', run_key(id), 'snap', 'created')
  local snapshot = cjson.decode(field[1])
  local submitted, waited = snapshot.submitted_ms or tonumber(field[2]), snapshot.waited_ms or {}
  local by_name, found = {}, {}
  for field, value in pairs(read_hash(results_key(id))) do
    local name, part = string.match(field, '^([^:]+)(.*)$')
    by_name[name] = by_name[name] or {}
    table.insert(by_name[name], 'r' .. part)
    table.insert(by_name[name], value)
  end
  for name, input in pairs(read_hash(items_key(id))) do
    local batch = {name = name, input = input, results = by_name[name] or {}, at = {}, accepted = {}}
    batch.number = tonumber(string.match(name, '%d+$'))
    for place, index in ipairs(indexes_of(string.match(input, '^[^\n]*'))) do
      batch.at[index] = submitted - (waited[index + 1] or 0)
      batch.accepted[place] = string.format('%.0f', batch.at[index])
    end
    found[#found + 1] = batch
  end
  table.sort(found, function(one, other)
    return one.number < other.number or one.number == other.number and one.name < other.name
  end)
  return found
end

-- Counts the turns of a batch by decision and rule, and by the bucket of their latency.
local function count_batch(batch, counters)
  for part = 2, #batch.results, 2 do
    local head = '^%d+|%d+|%d+|(%d+)|([^|]*)|([^\n]*)'
    local finished, indexes, codes = string.match(batch.results[part], head)
    local places, place = indexes_of(indexes), 0
    for code in string.gmatch(codes, '%S+') do
      place = place + 1
      local latency = math.max(1, tonumber(finished) - batch.at[places[place]])
      local bucket = math.ceil(math.log(latency) / math.log(LATENCY_GROWTH) - 1e-9)
      for _, word in ipairs({'turns ' .. string.sub(code, 1, 2), string.format('latency %d', bucket)}) do
        counters[word] = (counters[word] or 0) + 1
      end
    end
  end
end

-- Splits the id of an entry of the stream: its time, and the number of its last turn.
local function served_id(id)
  local at, number = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(at), tonumber(number)
end

-- Adds batches to the stream. The time of an entry is never before that of the last one, as Redis wants it.
local function append_batches(namespace, batches)
  local turns, at, number = served_turns_key(namespace), now(), 0
  local last = call('XREVRANGE', turns, '+', '-', 'COUNT', 1)[1]
  if last then
    local before
    before, number = served_id(last[1])
    at = math.max(at, before)
  end
  for _, batch in ipairs(batches) do
    number = number + #batch.accepted
    local id = string.format('%.0f-%.0f', at, number)
    call('XADD', turns, id, 'a', table.concat(batch.accepted, ' '), 'i', batch.input, unpack(batch.results))
  end
end

-- Lets requests be forgotten that the turns of a batch made.
local function evict_requests(namespace, input)
  local from = string.find(input, '\n', 1, true)
  for line in string.gmatch(string.sub(input, from + 1), '[^\n]+') do
    if string.find(line, 'clientRequestId', 1, true) or string.find(line, '\\u00', 1, true) then
      local is_read, turn = pcall(cjson.decode, line)
      local id = is_read and turn.clientRequestId
      if type(id) == 'string' then call('HDEL', requests_key(namespace), id) end
    end
  end
end

-- Removes turns that are too old, or more than are kept, with the requests that they made: some entries at a time.
-- Where nobody talks any more, all of them go together.
local function evict_turns(namespace, most, keep_ms, bound)
  local turns = served_turns_key(namespace)
  local _, last = served_id(call('XREVRANGE', turns, '+', '-', 'COUNT', 1)[1][1])
  local function is_kept(entry)
    local at, number = served_id(entry[1])
    return number == last or at >= now() - keep_ms and number > last - most
  end
  local over = string.format('%.0f', now() + keep_ms)
  call('PEXPIREAT', turns, over)
  if call('EXISTS', users_key(namespace)) == 0 then call('PEXPIREAT', requests_key(namespace), over) end
  if is_kept(call('XRANGE', turns, '-', '+', 'COUNT', 1)[1]) then return end
  local at, number
  for _, entry in ipairs(call('XRANGE', turns, '-', '+', 'COUNT', bound)) do
    if is_kept(entry) then break end
    at, number = served_id(entry[1])
    for field = 1, #entry[2], 2 do
      if entry[2][field] == 'i' then evict_requests(namespace, entry[2][field + 1]) end
    end
  end
  call('XTRIM', turns, 'MINID', string.format('%.0f-%.0f', at, number + 1))
end

-- Notes when the threads of a run talked, and removes those that have been silent for as long as a namespace is kept.
local function evict_threads(run)
  local seen, ttl_s = served_threads_key(run.ns), tonumber(call('HGET', run_key(run.id), 'ns_ttl'))
  for _, name in ipairs(call('SMEMBERS', threads_key(run.id))) do call('ZADD', seen, now(), name) end
  if ttl_s <= 0 then return end
  local before = string.format('%.0f', now() - ttl_s * 1000)
  for _, name in ipairs(call('ZRANGEBYSCORE', seen, '-inf', before, 'LIMIT', 0, EVICTED)) do
    call('ZREM', seen, name)
    if call('HEXISTS', owners_key(run.ns), name) + call('EXISTS', inbox_key(run.ns, name)) == 0 then
      call('HDEL', mementos_key(run.ns), name)
      call('HDEL', positions_key(run.ns), name)
    end
  end
  call('PEXPIREAT', seen, string.format('%.0f', now() + ttl_s * 1000))
end
