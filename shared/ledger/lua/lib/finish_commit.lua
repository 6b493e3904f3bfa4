-- The worker gives the chunk back: ended when nothing is left, else it waits, or stands aside for `delay` ms.
-- uses: TOP_UP, steady, plan_entry, undone, close, drop, to_parked, to_wait, top_up
local function finish_commit(run, chunk, delay)
  local generation, _, _, parts = plan_entry(run, chunk)
  local left = undone(run, generation, parts)
  if #left == 0 then
    close(run, chunk)
  elseif run.state == 'cancelling' then
    drop(run, chunk, left)
  elseif delay > 0 then
    to_parked(run, chunk, left, steady() + delay)
  else
    to_wait(run, chunk, left)
  end
  return top_up(run.kind, TOP_UP)
end
