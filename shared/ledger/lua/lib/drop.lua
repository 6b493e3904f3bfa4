-- Gives up what is left of an admitted chunk and ends it.
-- uses: close, forget_redo, withdraw
local function drop(run, chunk, left)
  if run.mailboxes then withdraw(run, left) else forget_redo(run, left) end
  close(run, chunk, left)
end
