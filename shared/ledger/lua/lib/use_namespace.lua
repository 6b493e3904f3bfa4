-- A namespace that an open run uses does not expire.
-- uses: positions_key, mementos_key, requests_key, users_key
local function use_namespace(run)
  call('SADD', users_key(run.ns), run.id)
  for _, key in ipairs({positions_key(run.ns), mementos_key(run.ns), requests_key(run.ns)}) do
    call('PERSIST', key)
  end
end
