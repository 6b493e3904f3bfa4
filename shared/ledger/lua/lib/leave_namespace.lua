-- Takes a run off the users of its namespace, whose time to live counts from the end of the last one.
-- uses: positions_key, mementos_key, requests_key, users_key, now
local function leave_namespace(namespace, id, ttl_s)
  call('SREM', users_key(namespace), id)
  if ttl_s <= 0 or call('EXISTS', users_key(namespace)) == 1 then return end
  local at = string.format('%.0f', now() + ttl_s * 1000)
  for _, key in ipairs({positions_key(namespace), mementos_key(namespace), requests_key(namespace)}) do
    call('PEXPIREAT', key, at)
  end
end
