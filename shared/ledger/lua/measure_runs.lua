-- Sums up some runs for metrics; reads only.
--
-- ARGV: runs
-- Returns per run that is there and not final: kind, state, items left, chunks that wait to be published,
--         since when its items wait (Redis' milliseconds)
-- uses: run_key, wait_key, is_final
local rows = {}
for _, id in ipairs(ARGV) do
  local field = call('HMGET', run_key(id), 'kind', 'state', 'goal', 'done', 'sealed', 'again')
  if field[1] and not is_final[field[2]] then
    local size = #rows
    rows[size + 1], rows[size + 2], rows[size + 3] = field[1], field[2], field[3] - field[4]
    rows[size + 4], rows[size + 5] = call('ZCARD', wait_key(id)), tonumber(field[6] or field[5] or 0)
  end
end
return rows
