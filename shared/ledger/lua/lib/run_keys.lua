-- All keys of a run but its chunk records, which end with their chunks.
-- uses: run_key, items_key, plan_key, wait_key, admitted_key, results_key, redo_key, tries_key, batches_key
-- uses: threads_key, run_dead_key, cost_key, holds_key
local function run_keys(id)
  return {
    run_key(id), items_key(id), plan_key(id), wait_key(id), admitted_key(id), results_key(id), redo_key(id),
    tries_key(id), batches_key(id), threads_key(id), run_dead_key(id), cost_key(id), holds_key(id),
  }
end
