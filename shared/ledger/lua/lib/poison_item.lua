-- Writes the error of an item that no worker survived.
-- uses: results_key, redo_key, tries_key, items_key, run_key, bury, add_count
local function poison_item(run, index, generation, strikes)
  call('HSET', results_key(run.id), index, generation .. '|poison')
  call('HDEL', redo_key(run.id), index)
  call('HDEL', tries_key(run.id), index)
  call('HINCRBY', run_key(run.id), 'done', 1)
  call('HINCRBY', run_key(run.id), 'n:error', 1)
  add_count('items ' .. run.kind .. ' error')
  add_count('steward ' .. run.kind .. ' item_poisoned')
  local payload = call('HGET', items_key(run.id), index) or ''
  bury(run.id, index, run.kind, generation, strikes, 'poison', payload, '')
end
