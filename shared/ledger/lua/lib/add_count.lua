-- Adds to a counter of the fleet (`shared.observability.counters`). Counters only grow and belong to no run.
-- uses: COUNTERS_KEY
local function add_count(name, amount)
  call('HINCRBY', COUNTERS_KEY, name, amount or 1)
end
