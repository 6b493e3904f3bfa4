"""`proctor serve`: turns are decided while people talk, through the same queue, ledger and workers as runs.

    request ──► gatherer ──► a micro-run: open, load, seal ──► workers decide
                   ▲  turns of all callers, 5 ms or 500          │ the ledger says that it has ended
                   └──────────── futures ◄── results ◄───────────┘ and it is folded into the stream

A micro-run is a run like any other, so that order, exactly-once effect and recovery are those of runs.
"""
