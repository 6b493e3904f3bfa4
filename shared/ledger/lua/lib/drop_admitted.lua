-- Gives up to BULK chunks that were handed out and are not leased just now.
-- uses: admitted_key, chunk_key, plan_entry, undone, drop, BULK
local function drop_admitted(run)
  local dropped = 0
  for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do
    if dropped == BULK then return end
    if call('HGET', chunk_key(run.id, chunk), 'st') ~= 'L' then
      local generation, _, _, parts = plan_entry(run, chunk)
      drop(run, chunk, undone(run, generation, parts))
      dropped = dropped + 1
    end
  end
end
