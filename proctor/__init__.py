"""Evaluations from Python: submit benches, follow runs, read results and compare them.

    import proctor
    from proctor import Bench, Case, check

    bench = Bench("capitals", cases=[Case("The capital of France?", checks=[check.contains("Paris")])])
    run = proctor.run(bench, app=answer)
    run.assert_gate("pass_rate>=0.9")

The package speaks to the `proctor` program of the same environment through its JSON documents and events.
Queue, workers and results are the program's: nothing of them is imported here.
"""

from proctor import check
from proctor.benches import Bench, Case, Check, ModelConfig
from proctor.errors import GateError, ProctorError, ProctorWarning
from proctor.following import Event, Watch, run, submit, watch
from proctor.live import AsyncProducer, Producer, QueueFullError
from proctor.runs import Comparison, Row, Run, runs
from proctor.turn_service import Decision, TurnError

__all__ = [
    "AsyncProducer",
    "Bench",
    "Case",
    "Check",
    "Comparison",
    "Decision",
    "Event",
    "GateError",
    "ModelConfig",
    "ProctorError",
    "ProctorWarning",
    "Producer",
    "QueueFullError",
    "Row",
    "Run",
    "TurnError",
    "Watch",
    "check",
    "run",
    "runs",
    "submit",
    "watch",
]
