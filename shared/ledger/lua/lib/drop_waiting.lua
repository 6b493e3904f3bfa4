-- Gives up all chunks that were never handed out, in one stroke: a million of them are two keys to unlink.
-- Only those of a retry (their order is above 1e9) have something to take back.
-- uses: wait_key, plan_key, admitted_key, chunk_key, order, plan_entry, forget_again, forget_redo, settle
local function take_back(run, admitted)
  for _, chunk in ipairs(call('ZRANGEBYSCORE', wait_key(run.id), 1e9, '+inf')) do
    if not admitted[chunk] then
      local _, _, _, parts = plan_entry(run, chunk)
      if run.mailboxes then
        for _, part in ipairs(parts) do forget_again(run, part[4]) end
      else
        forget_redo(run, parts)
      end
    end
  end
end

local function drop_waiting(run)
  local wait, plan, entries = wait_key(run.id), plan_key(run.id), {}
  for _, chunk in ipairs(call('SMEMBERS', admitted_key(run.id))) do entries[chunk] = call('HGET', plan, chunk) end
  take_back(run, entries)
  call('UNLINK', wait, plan)
  for chunk, entry in pairs(entries) do
    call('HSET', plan, chunk, entry)
    if call('HGET', chunk_key(run.id, chunk), 'st') == 'W' then call('ZADD', wait, order(chunk), chunk) end
  end
  settle(run)
end
