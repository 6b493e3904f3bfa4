-- Items that lie under their index, as cases and queries do: handed out, given up, or poison.

-- Reads what a worker needs of each item that is due: index, generation, payload, attempts, parked state.
-- Also returns when the earliest of the others is due.
local function give_items(run, left)
  local payloads = call('HMGET', items_key(run.id), unpack(left))
  local redo = run.retried and call('HMGET', redo_key(run.id), unpack(left)) or {}
  local tries = run.tried and call('HMGET', tries_key(run.id), unpack(left)) or {}
  local items, earliest = {}, nil
  for at, index in ipairs(left) do
    local attempts, due, parked_state = string.match(tries[at] or '0|0|', '^(%d+)|(%d+)|(.*)$')
    due = tonumber(due)
    if due <= steady() then
      local size = #items
      items[size + 1], items[size + 2], items[size + 3] = index, redo[at] or 0, payloads[at] or ''
      items[size + 4], items[size + 5] = attempts, parked_state
    elseif not earliest or due < earliest then
      earliest = due
    end
  end
  return items, earliest
end

-- A retry that is given up: the old results stand, and the run has that much less to do.
local function forget_redo(run, left)
  local redo, redone, letters = redo_key(run.id), 0, {}
  if not run.retried then return end
  for _, index in ipairs(left) do
    local value = call('HDEL', redo, index) == 1 and call('HGET', results_key(run.id), index)
    if value then
      local letter = outcome_of(value)
      redone, letters[letter] = redone + 1, (letters[letter] or 0) + 1
    end
  end
  if redone > 0 then call('HINCRBY', run_key(run.id), 'goal', -redone) end
  move_outcomes(run.id, letters, 1)
end

-- Writes the error of an item that no worker survived.
local function poison_item(run, index, generation, strikes)
  call('HSET', results_key(run.id), index, generation .. '|poison')
  call('HDEL', redo_key(run.id), index)
  call('HDEL', tries_key(run.id), index)
  call('HINCRBY', run_key(run.id), 'done', 1)
  call('HINCRBY', run_key(run.id), 'n:error', 1)
  add_count('items ' .. run.kind .. ' error')
  add_count('steward ' .. run.kind .. ' item_poisoned')
  local payload = call('HGET', items_key(run.id), index) or ''
  bury(run.id, index, run.kind, generation, strikes, 'poison', payload, '')
end
