-- Reservations of what calls may cost, and what happens to those of dead processes.

-- Writes a number as Redis takes it in HINCRBY.
local function whole(number) return string.format('%.0f', number) end

-- Reservations of processes that died count as spent: their calls may have been answered, and billed.
-- A process that was only slow still reports the cost of its call, which then replaces the reservation.
-- The hash of a run's cost, in billionths of a dollar:
--   cap          set by hand; goes before what the run was submitted with
--   spent        what was billed, or counts as billed
--   held         sum of what is reserved by calls under way
--   over         there, when the last reservation was refused because the cap is reached
--   c:CALL       what a call under way has reserved
--   x:CALL       what was reserved by a call that was not renewed for a lease; it is part of `spent`
--   m:MODEL      the most that one answer of the model has cost in this run
local function expire_reservations(run)
  local gone = call('ZRANGEBYSCORE', holds_key(run), '-inf', clock())
  for _, id in ipairs(gone) do
    local amount = call('HGET', cost_key(run), 'c:' .. id)
    call('HDEL', cost_key(run), 'c:' .. id)
    call('HSET', cost_key(run), 'x:' .. id, amount)
    call('HINCRBY', cost_key(run), 'held', whole(0 - amount))
    call('HINCRBY', cost_key(run), 'spent', amount)
    call('ZREM', holds_key(run), id)
  end
end
