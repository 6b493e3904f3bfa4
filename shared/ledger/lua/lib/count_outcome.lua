-- Counts how items ended, from the tally of a commit; other words of a tally are of its run alone.
-- uses: add_count
local is_outcome = {passed = true, failed = true, error = true, must = true, should = true, skip = true}
local function count_outcome(kind, word, amount)
  if is_outcome[word] then add_count('items ' .. kind .. ' ' .. word, amount) end
end
