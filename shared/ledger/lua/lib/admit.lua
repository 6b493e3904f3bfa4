-- The first publication of a chunk: from now on it has a record, and its turns stand in the inboxes.
-- uses: admitted_key, inbox_key
local function admit(run, chunk, entry)
  call('SADD', admitted_key(run.id), chunk)
  if run.kind ~= 'turns' then return end
  local _, _, _, parts = cmsgpack.unpack(entry)
  for _, part in ipairs(parts) do
    call('RPUSH', inbox_key(run.ns, part[2]), run.id .. ' ' .. part[1] .. ' ' .. part[3])
  end
end
