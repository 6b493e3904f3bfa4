-- What helpers need to know of a run; nil when there is no such run. `retried` and `tried` say whether there
-- ever were items asked for again, or tries noted: most runs have neither, and need not look. `wide` is the most
-- chunks that may be under way at a time, nil for no limit.
-- uses: run_key, LAYOUT
local function read_run(id)
  local field = call('HMGET', run_key(id), 'state', 'kind', 'ns', 'v', 'gen', 'tried', 'wide')
  if not field[1] then return nil end
  return {
    id = id, state = field[1], kind = field[2], ns = field[3], alien = tonumber(field[4]) ~= LAYOUT,
    retried = field[5] ~= '0', tried = field[6], wide = tonumber(field[7]),
  }
end
