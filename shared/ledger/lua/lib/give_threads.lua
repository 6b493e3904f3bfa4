-- Locks the free threads among those of a chunk for the chunk's lease, and reads what a worker needs of each:
-- {name, 'position offset', state, run, batch, count, payload, run, …}. Also counts the threads held elsewhere.
-- uses: owners_key, positions_key, mementos_key, inbox_key, items_key, fetch
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
      local size = #thread
      thread[size + 1], thread[size + 2], thread[size + 3], thread[size + 4] = id, batch, count, ''
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
