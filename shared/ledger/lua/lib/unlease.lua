-- Ends the lease of a chunk, if it has one, with everything that belongs to the lease: its threads (of the
-- parts `left`) and its mark as the worker's suspect. Takes the chunk out of the sets of its kind.
-- Returns when it was claimed (nil: it was not leased) and its state; the record itself is the caller's to mend.
-- uses: chunk_key, live_key, parked_key, owners_key, SUSPECTS_KEY, SUSPECT_STRIKES
local function release(run, left, lease)
  local names, mine = {}, {}
  for at, part in ipairs(left) do names[at] = part[2] end
  if #names == 0 then return end
  for at, owner in ipairs(call('HMGET', owners_key(run.ns), unpack(names))) do
    if owner == lease then mine[#mine + 1] = names[at] end
  end
  if #mine > 0 then call('HDEL', owners_key(run.ns), unpack(mine)) end
end

local function unlease(run, chunk, left)
  local record, member = chunk_key(run.id, chunk), run.id .. ' ' .. chunk
  local field = call('HMGET', record, 'st', 'own', 'w', 'at', 'k')
  if field[1] == 'L' then
    local lease = member .. ' ' .. field[2]
    if run.mailboxes then release(run, left, lease) end
    local suspect = (tonumber(field[5]) or 0) >= SUSPECT_STRIKES
    if suspect and call('HGET', SUSPECTS_KEY, field[3]) == lease then call('HDEL', SUSPECTS_KEY, field[3]) end
  end
  if field[1] == 'D' then
    call('ZREM', parked_key(run.kind), member)
  elseif field[1] ~= 'W' then
    call('ZREM', live_key(run.kind), member)
  end
  return field[4], field[1]
end
