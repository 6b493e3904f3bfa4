-- Takes an item out of the dead set, because a retry has brought a new result.
-- uses: DEAD_KEY, DEAD_ITEMS_KEY, run_dead_key
local function unbury(id, index)
  if call('SREM', run_dead_key(id), index) == 0 then return end
  call('ZREM', DEAD_KEY, id .. ' ' .. index)
  call('HDEL', DEAD_ITEMS_KEY, id .. ' ' .. index)
end
