-- What helpers need to know of a run; nil when there is no such run. `retried` and `tried` say whether there
-- ever were items asked for again, or tries noted: most runs have neither, and need not look. `wide` is the most
-- chunks that may be under way at a time, nil for no limit. `mailboxes` says whether its items lie in the inboxes
-- of threads and not under their index; a run that was opened by version 0.1 has no such field, and its kind says it.
-- uses: run_key, LAYOUT
local function read_run(id)
  local field = call('HMGET', run_key(id), 'state', 'kind', 'ns', 'v', 'gen', 'tried', 'wide', 'storage')
  if not field[1] then return nil end
  return {
    id = id, state = field[1], kind = field[2], ns = field[3], alien = tonumber(field[4]) ~= LAYOUT,
    retried = field[5] ~= '0', tried = field[6], wide = tonumber(field[7]),
    mailboxes = field[8] == 'mailboxes' or not field[8] and field[2] == 'turns',
  }
end
