"""The ledger's calls for people: pause, resume, end, retry and remove runs, and forget threads."""

from collections.abc import Mapping, Sequence

from shared import keys
from shared.errors import RunStateError, UnknownRunError, UsageError
from shared.ledger import wire
from shared.ledger.base import LedgerCalls
from shared.ledger.types import ChunkPlan, Wake


class OperatingCalls(LedgerCalls):
    """Steers runs that are sealed."""

    def control(self, run: str, action: str) -> tuple[str, list[Wake]]:
        """Changes a run's state.

        Args:
            run: id of the run.
            action: `pause`, `resume`, or how the run is to end: `cancelled`, `aborted`, `incomplete`.

        Returns:
            The run's state after it, and wakes. A run that loads or is final stays as it is.

        Raises:
            UnknownRunError: no run has this id.
        """
        state, wakes = self.caller.run("control", run, action)
        if not state:
            raise unknown(run)
        return state.decode(), wire.wakes_from(wakes)

    def retry(
        self,
        run: str,
        operation: str,
        *,
        chunks: Sequence[ChunkPlan],
        items: Mapping[str, bytes] | None = None,
        extra: int = 0,
        generation: int | None = None,
    ) -> list[Wake]:
        """Asks for items again; old results stay until the new ones are in.

        Args:
            run: id of the run; turns need a final one.
            operation: names this retry: the same one again changes nothing.
            chunks: what to ask for. Turns are named by (label, thread, turns[, marks]) and get batch
                ids of the new generation, in order.
            items: turns only: batch by label.
            extra: turns only: how many of them already have a result, for parts without marks.
            generation: the run's generation when the results were read that led to this choice; when another
                retry has come between, this one is refused. None takes the risk.

        Raises:
            UnknownRunError: no run has this id.
            RunStateError: the run is loading or being cancelled, turns are asked for while it runs, or
                another retry has come between.
            UsageError: nothing of what is asked for can be asked for.
        """
        flat: list[wire.Argument] = []
        for chunk in chunks:
            flat += (chunk.first, len(chunk.parts))
            if items:
                marks = wire.again_marks(chunk.parts, extra)
                extra = max(0, extra - "".join(marks).count("1"))
                for part, mark in zip(chunk.parts, marks, strict=True):
                    flat += (part[1], part[2], mark if "1" in mark else "", items[part[0]])
            else:
                flat += chunk.parts
        seen = "" if generation is None else generation
        answer = self.caller.run("retry", run, operation, seen, len(chunks), *flat)
        match answer:
            case [b"ok", list(wakes)]:
                return wire.wakes_from(wakes)
            case [b"none"]:
                raise UsageError(f"run {run} has nothing to retry")
            case [b"no", bytes(state)]:
                raise RunStateError(
                    f"run {run} is {state.decode()} and cannot be retried now",
                    hint="wait for its end, or cancel it",
                )
            case [b"changed"]:
                raise RunStateError(
                    f"run {run} was retried by somebody else just now", hint="look at its results again"
                )
            case _:
                raise unknown(run)

    def remove(self, run: str) -> bool:
        """Removes a run at once that is final, paused or being cancelled, or whose loader is gone.

        Returns:
            False when no run has this id.

        Raises:
            RunStateError: the run is at work.
        """
        answer = self.caller.run("remove", run)
        if answer[0] == b"no":
            state = answer[1].decode()
            raise RunStateError(
                f"run {run} is {state}",
                hint="wait until its loader has been silent for a while"
                if state == "loading"
                else f"cancel it first: proctor cancel {run}",
            )
        return bool(answer[0] == b"ok")

    def forget(self, namespace: str, threads: Sequence[str] = (), requests: Sequence[str] = ()) -> int:
        """Removes threads of a namespace that no open run uses; their next turns begin anew.

        Args:
            namespace: its name, or a run's id.
            threads: which ones; all of it by default, with every answered request.
            requests: `clientRequestId`s that these threads have answered.

        Returns:
            How many threads there were.

        Raises:
            RunStateError: a run uses the namespace.
        """
        answer = self.caller.run("forget", namespace, len(threads), *threads, *(requests if threads else ()))
        if answer[0] == b"no":
            run = answer[1].decode()
            raise RunStateError(
                f"the threads of {namespace} are in use by run {run}",
                hint=f"wait for its end, or cancel it: proctor cancel {run}",
            )
        return int(answer[1])

    def backlog(self) -> int:
        """Returns how many items sealed, unfinished runs still have to decide."""
        client = self.caller.client

        def fields() -> list[tuple[bytes | None, bytes | None]]:
            runs = [run.decode() for run in client.smembers(keys.OPEN_KEY)]
            with client.pipeline(transaction=False) as pipeline:
                for run in runs:
                    pipeline.hmget(keys.run_key(run), "goal", "done")
                return list(pipeline.execute())

        return sum(max(0, int(goal or 0) - int(done or 0)) for goal, done in self.caller.patiently(fields))


def unknown(run: str) -> UnknownRunError:
    """Says that no run has this id.

    >>> unknown("r1").message
    'no run is called r1'
    """
    return UnknownRunError(
        f"no run is called {run}", hint="see `proctor runs`; results expire after a while", run=run
    )
