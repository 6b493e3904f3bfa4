-- Takes turns that were given up out of the inboxes; a change of an inbox's front moves the thread's position.
-- uses: inbox_key, positions_key, position, forget_again
local function withdraw(run, left)
  for _, part in ipairs(left) do
    local thread, ref, marks = part[2], run.id .. ' ' .. part[1] .. ' ' .. part[3], part[4]
    local box = inbox_key(run.ns, thread)
    local at, offset = position(call('HGET', positions_key(run.ns), thread))
    if call('LINDEX', box, 0) == ref then
      marks, offset = string.sub(marks, offset + 1), 0
    end
    call('LREM', box, 1, ref)
    call('HSET', positions_key(run.ns), thread, at + 1 .. ' ' .. offset)
    forget_again(run, marks)
  end
end
