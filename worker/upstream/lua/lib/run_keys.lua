-- Keys that belong to a run.

-- Lets keys expire with their run; those of a run that is gone or has ended must not stay for ever.
local function end_with_run(run, ...)
  local ms = call('PTTL', run_key(run))
  if ms == -2 then ms = USED_MS end
  if ms <= 0 then return end
  for _, key in ipairs({...}) do call('PEXPIRE', key, ms) end
end
