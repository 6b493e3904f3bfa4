-- Reads what a worker needs of each item that is due: index, generation, payload, attempts, last error.
-- Also says when the earliest of the others is due.
-- uses: items_key, redo_key, tries_key, steady
local function give_items(run, left)
  local payloads = call('HMGET', items_key(run.id), unpack(left))
  local redo = run.retried and call('HMGET', redo_key(run.id), unpack(left)) or {}
  local tries = run.tried and call('HMGET', tries_key(run.id), unpack(left)) or {}
  local items, earliest = {}, nil
  for at, index in ipairs(left) do
    local attempts, due, failure = string.match(tries[at] or '0|0|', '^(%d+)|(%d+)|(.*)$')
    due = tonumber(due)
    if due <= steady() then
      local size = #items
      items[size + 1], items[size + 2], items[size + 3] = index, redo[at] or 0, payloads[at] or ''
      items[size + 4], items[size + 5] = attempts, failure
    elseif not earliest or due < earliest then
      earliest = due
    end
  end
  return items, earliest
end
