-- A lease ran out: its worker is gone, or too slow to say that it is there.
-- uses: chunk_key, owners_key, SUSPECT_STRIKES, POISON_STRIKES, plan_entry, undone, drop, close, explode
-- uses: poison_item, poison_turn, to_wait, add_count
local function strike(run, chunk, left)
  local record = chunk_key(run.id, chunk)
  local field = call('HMGET', record, 'own', 'k')
  local strikes = tonumber(field[2]) or 0
  if run.mailboxes and #left == 1 then
    -- A chunk that waited for its only thread was not at work on it.
    local lease = run.id .. ' ' .. chunk .. ' ' .. field[1]
    if call('HGET', owners_key(run.ns), left[1][2]) ~= lease then return strikes end
  end
  call('HSET', record, 'k', strikes + 1)
  return strikes + 1
end

local function expire(run, chunk)
  local generation, first, _, parts = plan_entry(run, chunk)
  local left = undone(run, generation, parts)
  add_count('steward ' .. run.kind .. ' lease_ended')
  if #left == 0 or run.state == 'cancelling' then return drop(run, chunk, left) end
  local strikes = strike(run, chunk, left)
  if #left > 1 and strikes >= SUSPECT_STRIKES then
    return explode(run, chunk, generation, first, left)
  end
  if #left == 1 and strikes >= POISON_STRIKES then
    if run.mailboxes then
      poison_turn(run.ns, left[1][2], strikes)
      call('HSET', chunk_key(run.id, chunk), 'k', SUSPECT_STRIKES)
    else
      poison_item(run, left[1], generation, strikes)
    end
    if #undone(run, generation, parts) == 0 then return close(run, chunk, left) end
  end
  to_wait(run, chunk, left)
end
