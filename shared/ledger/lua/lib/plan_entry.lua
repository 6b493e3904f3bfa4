-- What a chunk is made of: generation, what it begins with, number of items, parts.
-- A part is an index, or for turns {batch, thread, count, again}; `again` marks turns that already have a
-- result with 1, one character each, and is empty when none has.
-- uses: plan_key
local function plan_entry(run, chunk)
  return cmsgpack.unpack(call('HGET', plan_key(run.id), chunk))
end
