-- The states in which nothing of a run changes any more.
local is_final = {finished = true, cancelled = true, aborted = true, incomplete = true}
