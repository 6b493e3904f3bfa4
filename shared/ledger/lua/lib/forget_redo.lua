-- A retry that is given up: the old results stand, and the run has that much less to do.
-- uses: redo_key, results_key, run_key
local function forget_redo(run, left)
  local redo, again = redo_key(run.id), 0
  if not run.retried then return end
  for _, index in ipairs(left) do
    if call('HDEL', redo, index) == 1 and call('HEXISTS', results_key(run.id), index) == 1 then
      again = again + 1
    end
  end
  if again > 0 then call('HINCRBY', run_key(run.id), 'goal', -again) end
end
