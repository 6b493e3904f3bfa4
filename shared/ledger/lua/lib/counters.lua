-- Counters of the fleet, and of how items ended.

-- Adds to a counter of the fleet (`shared.observability.counters`). Counters only grow and belong to no run.
local function add_count(name, amount)
  call('HINCRBY', COUNTERS_KEY, name, amount or 1)
end

-- Moves the outcomes of results that are asked for again out of a run's tally (sign -1), or back into it (1), as
-- its goal moves: what is retried counts as open. An outcome is the letter with which a code begins
-- (`shared.codecs`), or the value of a poisoned item.
local word_of = {p = 'passed', f = 'failed', x = 'error', m = 'must', s = 'should', k = 'skip'}
local function move_outcomes(id, letters, sign)
  for letter, number in pairs(letters) do
    if word_of[letter] then call('HINCRBY', run_key(id), 'n:' .. word_of[letter], sign * number) end
  end
end

-- Reads the outcome of a stored result, 'generation|code…'.
local function outcome_of(value)
  local code = string.match(value, '^%d+|(.*)$') or ''
  return code == 'poison' and 'x' or string.sub(code, 1, 1)
end

-- Counts how items ended, from the tally of a commit; other words of a tally are of its run alone.
local is_outcome = {passed = true, failed = true, error = true, must = true, should = true, skip = true}
local function count_outcome(kind, word, amount)
  if is_outcome[word] then add_count('items ' .. kind .. ' ' .. word, amount) end
end
