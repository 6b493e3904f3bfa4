"""Changes the state of a run and says what came of it."""

import json

from producer.cli.context import Session
from producer.cli.errors import SCHEMA_VERSION
from shared.errors import RunStateError
from shared.names import FINAL_STATES, RunState

_REACHED: dict[str, frozenset[str]] = {
    "pause": frozenset({RunState.PAUSED}),
    "resume": frozenset({RunState.RUNNING}),
    "cancelled": frozenset({RunState.CANCELLING, RunState.CANCELLED}),
}


def change_state(session: Session, run: str, *, action: str) -> str:
    """Changes a run's state, publishes the wake-ups that follow from it, and returns the state after it.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: the run is in a state that does not allow it.
    """
    from producer.cli.run_lookup import find_run  # noqa: PLC0415 - start-up: `--help` must not load redis

    find_run(session, run)
    state, wakes = session.ledger.control(run, action)
    if wakes:
        session.publisher.publish(wakes)
    if state in _REACHED[action]:
        return state
    if state in FINAL_STATES:
        raise RunStateError(f"run {run} is {state} already", hint=f"`proctor retry {run}` works on it again")
    raise RunStateError(f"run {run} is {state}", hint=f"`proctor watch {run}` shows it")


def tell_state(session: Session, run: str, *, action: str) -> None:
    """Changes a run's state and tells the new one."""
    state = change_state(session, run, action=action)
    if session.options.json:
        document = {"schema_version": SCHEMA_VERSION, "run_id": run, "state": state, "exit": 0}
        session.output.data(json.dumps(document))
    else:
        session.output.data(f"{run} {state}")
