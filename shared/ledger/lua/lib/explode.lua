-- Takes a chunk apart into chunks of one part each, all of them suspects.
-- uses: plan_key, chunk_key, wait_key, admitted_key, SUSPECT_STRIKES, order, unlease, join_ring
-- uses: add_count
local function explode(run, chunk, generation, first, left)
  for at, part in ipairs(left) do
    local piece, label, count = chunk .. '/' .. at - 1, first, 1
    if run.mailboxes then
      label, count = part[2], part[3]
    elseif at > 1 then
      label = first .. ' +' .. at - 1
    end
    call('HSET', plan_key(run.id), piece, cmsgpack.pack(generation, label, tonumber(count), {part}))
    call('HSET', chunk_key(run.id, piece), 'st', 'W', 'k', SUSPECT_STRIKES)
    call('SADD', admitted_key(run.id), piece)
    call('ZADD', wait_key(run.id), order(piece), piece)
  end
  unlease(run, chunk, left)
  call('UNLINK', chunk_key(run.id, chunk))
  call('SREM', admitted_key(run.id), chunk)
  call('HDEL', plan_key(run.id), chunk)
  join_ring(run)
  add_count('steward ' .. run.kind .. ' chunk_split')
end
