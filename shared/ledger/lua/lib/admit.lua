-- The first publication of a chunk: from now on it has a record, and its turns stand in the inboxes.
-- uses: inbox_key
local function admit(run, entry)
  local _, _, _, parts = cmsgpack.unpack(entry)
  for _, part in ipairs(parts) do
    call('RPUSH', inbox_key(run.ns, part[2]), run.id .. ' ' .. part[1] .. ' ' .. part[3])
  end
end
