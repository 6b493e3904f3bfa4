-- Counters of the fleet, and of how items ended.

-- Adds to a counter of the fleet (`shared.observability.counters`). Counters only grow and belong to no run.
-- uses: COUNTERS_KEY
local function add_count(name, amount)
  call('HINCRBY', COUNTERS_KEY, name, amount or 1)
end

-- Counts how items ended, from the tally of a commit; other words of a tally are of its run alone.
-- uses: add_count
local is_outcome = {passed = true, failed = true, error = true, must = true, should = true, skip = true}
local function count_outcome(kind, word, amount)
  if is_outcome[word] then add_count('items ' .. kind .. ' ' .. word, amount) end
end
