-- Writes the error of the turn at a thread's front (of whichever run it is): no worker survived it.
-- Its block holds the thread's stored state in place of a result.
-- uses: inbox_key, positions_key, mementos_key, items_key, results_key, run_key, now, position
-- uses: batch_generation, batch_turn, bury, add_count
local function poison_turn(namespace, thread, strikes)
  local box, positions = inbox_key(namespace, thread), positions_key(namespace)
  local id, batch, count = string.match(call('LINDEX', box, 0), '^(%S+) (%S+) (%d+)$')
  local kind = call('HGET', run_key(id), 'kind')
  local at, offset = position(call('HGET', positions, thread))
  local index, line = batch_turn(call('HGET', items_key(id), batch), offset)
  local generation, moment = batch_generation(batch), string.format('%.0f', now())
  local last = offset + 1 == tonumber(count)
  local block = table.concat({offset, moment, moment, index, 'x0p'}, '|') .. '\n'
    .. (call('HGET', mementos_key(namespace), thread) or '')
  call('HSET', results_key(id), last and batch or batch .. ':' .. offset, generation .. '|' .. block)
  call('HINCRBY', run_key(id), 'done', 1)
  call('HINCRBY', run_key(id), 'n:error', 1)
  add_count('items ' .. kind .. ' error')
  add_count('steward ' .. kind .. ' item_poisoned')
  if last then call('LPOP', box) end
  call('HSET', positions, thread, at + 1 .. ' ' .. (last and 0 or offset + 1))
  bury(id, index, kind, generation, strikes, 'poison', line, '')
end
