-- The steward's tick: registers the worker, then repairs what is due. Does nothing more when another tick was
-- less than TICK_MS ago, so that any number of stewards need no lock; the search of an idle worker for lost wake-ups
-- is part of each. A tick of an earlier version leaves newer runs alone, and so does not count.
--
-- ARGV: worker, chunks it works on at a time (0: it drains), of its kinds those with nothing to do, its kinds
-- Returns wakes
when_full()
local moment, ledger_moment = now(), clock()
for at = 4, #ARGV do
  call('HSET', capacity_key(ARGV[at]), ARGV[1], ARGV[2])
  call('HSET', layouts_key(ARGV[at]), ARGV[1], LAYOUT)
  call('ZADD', workers_key(ARGV[at]), ledger_moment + LEASE_MS, ARGV[1])
end

local wakes = {}
for kind in string.gmatch(ARGV[3], '%S+') do wake_unclaimed(kind, wakes) end

local own = 'at' .. LAYOUT
local ticked = call('HMGET', CLOCK_KEY, 'at', own)
local last = tonumber(ticked[1]) or 0
local function is_recent(at) return at ~= 0 and moment >= at and moment - at < TICK_MS end
if is_recent(last) and is_recent(tonumber(ticked[2]) or 0) then return wakes end
call('HSET', CLOCK_KEY, 'at', moment, own, moment, 'lc', ledger_moment, 'lease', LEASE_MS)
if moment < last then
  call('HSET', CLOCK_KEY, 'back', (tonumber(call('HGET', CLOCK_KEY, 'back')) or 0) + last - moment)
end

for _, id in ipairs(call('SMEMBERS', BUSY_KEY)) do
  local run = read_run(id)
  if run and not run.alien then
    if run.state == 'cancelling' then
      drop_admitted(run)
    elseif run.state == 'loading' and tonumber(call('HGET', run_key(id), 'until')) <= ledger_moment then
      wipe(id)
    end
  end
end
for _, id in ipairs(call('ZRANGEBYSCORE', EXPIRING_KEY, '-inf', moment, 'LIMIT', 0, WIPE_BULK)) do wipe(id) end

for _, kind in ipairs(KINDS) do
  heal(kind, wakes)
  for _, value in ipairs(top_up(kind, TICK_TOP_UP)) do wakes[#wakes + 1] = value end
end
return wakes
