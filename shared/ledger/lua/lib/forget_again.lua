-- Turns that will not be decided again after all: the run has that much less to do.
-- uses: run_key
local function forget_again(run, marks)
  local _, again = string.gsub(marks, '1', '')
  if again > 0 then call('HINCRBY', run_key(run.id), 'goal', -again) end
end
