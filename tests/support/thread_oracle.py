"""Says what every row of a turns run must hold: its threads replayed turn by turn, with nothing in between.

No batches, no ledger, no worker, no report: the document's nine steps, one dictionary of threads, and one
of requests. Whatever was killed, sent twice or lost on the way, the JSON Lines that a person gets have to
say the same as this.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from shared.clock import parse_iso_ms
from worker.breakpoint.idempotency import IDEMPOTENCY_CONFLICT
from worker.breakpoint.memento import seed
from worker.breakpoint.orchestrator import DecidedTurn, Refusal, RunPolicy, Thread, run_turn
from worker.breakpoint.turn_wire import WireTurn, decode_turns

Row = Mapping[str, Any]
"""One object of `results RUN --format jsonl`, or of `results RUN --traces`."""


class Expected(NamedTuple):
    """What a row has to say about one turn."""

    outcome: str
    error: str | None
    cached: bool
    result: dict[str, Any]

    def check(self, row: Row) -> None:
        """Asserts that a row says it."""
        where = f"{row['run_id']} {row['item_id']}"
        assert row["outcome"] == self.outcome, f"{where}: {row}"
        assert row["cached"] == self.cached, f"{where}: {row}"
        assert (row["error"] or {}).get("code") == self.error, f"{where}: {row}"
        for key, value in self.result.items():
            assert row["result"][key] == value, f"{where}: {key} is {row['result'][key]!r}, not {value!r}"


class ThreadOracle:
    """The threads of one namespace, and the requests it has answered."""

    def __init__(self) -> None:
        self._threads: dict[str, Thread] = {}
        self._answered: dict[str, tuple[WireTurn, Expected]] = {}

    def answer(self, line: bytes, index: int, policy: RunPolicy) -> Expected:
        """Decides the next turn of its thread.

        Args:
            line: the turn's line of the input.
            index: its position there.
            policy: what its run says.
        """
        [turn] = decode_turns(line)
        assert turn is not None, line
        request = turn.client_request_id
        if request in self._answered:
            first, expected = self._answered[request]
            if _same(first, turn):
                return expected._replace(cached=True)
            return self._refused(turn, policy, IDEMPOTENCY_CONFLICT)
        thread = self._threads.setdefault(turn.thread_id, Thread(turn.thread_id))
        message_id = turn.message_id or f"{turn.thread_id}#{index}"
        outcome = run_turn(turn, thread, policy, message_id)
        if isinstance(outcome, Refusal):
            return self._refused(turn, policy, outcome.code)
        expected = Expected("decided", None, cached=False, result=_result(turn, message_id, thread, outcome))
        if request is not None:
            self._answered[request] = turn, expected
        return expected

    def _refused(self, turn: WireTurn, policy: RunPolicy, code: str) -> Expected:
        thread = self._threads.get(turn.thread_id, Thread(turn.thread_id))
        latest = thread.latest or seed(turn.thread_id, turn.ts or policy.submitted_at)
        result = {
            "threadId": turn.thread_id,
            "decision": None,
            "rule": None,
            "etag": thread.etag,
            "memento": _plain(latest.memento),
        }
        return Expected("error", code, cached=False, result=result)


def _result(turn: WireTurn, message_id: str, thread: Thread, outcome: DecidedTurn) -> dict[str, Any]:
    decision, rule, reason = outcome.verdict
    return {
        "threadId": turn.thread_id,
        "messageId": message_id,
        "decision": decision.value,
        "rule": rule,
        "peakGuardrailActive": outcome.peak_guardrail_active,
        "summaryUpdated": outcome.summary_updated,
        "reason": reason,
        "source": outcome.source,
        "etag": thread.etag,
        "memento": _plain(outcome.latest.memento),
        "response": outcome.response,
    }


def _plain(value: object) -> Any:
    return json.loads(msgspec.json.encode(value))


def _same(first: WireTurn, second: WireTurn) -> bool:
    plain = [json.loads(turn.meta) if turn.meta else None for turn in (first, second)]
    bare = [msgspec.structs.replace(turn, meta=msgspec.Raw(b"")) for turn in (first, second)]
    return plain[0] == plain[1] and bare[0] == bare[1]


def policy_of(rows: Sequence[Row], *, summary_policy: str = "guardrail") -> RunPolicy:
    """Reads a run's settings off its rows: a turn without a time has that of the submit.

    Args:
        rows: of a run whose first decided turn has no time of its own.
        summary_policy: as the run was configured.
    """
    decided = next(row for row in rows if row["outcome"] == "decided" and not row["cached"])
    submitted_ms = parse_iso_ms(decided["result"]["memento"]["updatedAt"])
    return RunPolicy(rows[0]["run_id"], submitted_ms, summary_policy)


def check_run(
    rows: Sequence[Row],
    lines: Sequence[bytes],
    *,
    poisoned: Collection[int] = (),
    retried: Sequence[int] = (),
) -> list[Expected]:
    """Asserts that a run of threads of its own says of each turn, once and in input order, what it must.

    Args:
        rows: what `results --format jsonl` printed.
        lines: the input's lines.
        poisoned: positions of turns that no worker survived: they left no trace in their thread.
        retried: positions of turns that were decided after all others of their thread, in this order.
    """
    assert [row["index"] for row in rows] == list(range(len(lines)))
    assert [row["item_id"] for row in rows] == [f"turn-{index}" for index in range(len(lines))]
    policy, oracle = policy_of(rows), ThreadOracle()
    late = {*poisoned, *retried}
    order = [index for index in range(len(lines)) if index not in late] + list(retried)
    expected = {index: oracle.answer(lines[index], index, policy) for index in order}
    for index in poisoned:
        expected[index] = Expected("error", "poison", cached=False, result={"decision": None, "rule": None})
    for index, row in enumerate(rows):
        expected[index].check(row)
    if not (late or any(row["cached"] or row["error"] for row in rows)):
        check_etags(rows)
    return [expected[index] for index in range(len(lines))]


def check_etags(rows: Iterable[Row]) -> None:
    """Asserts that the turns of each thread, all decided, count from 1 to n in input order."""
    etags: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        etags[row["result"]["threadId"]].append(row["result"]["etag"])
    for thread, found in etags.items():
        assert found == [str(count) for count in range(1, len(found) + 1)], thread


def check_traces(events: Sequence[Row], rows: Sequence[Row]) -> None:
    """Asserts that each decided turn, and nothing else, has one event, which says what its row says."""
    decided = [row for row in rows if row["outcome"] == "decided" and not row["cached"]]
    assert [event["transmissionId"] for event in events] == [
        f"{row['run_id']}:{row['index']}" for row in decided
    ]
    for event, row in zip(events, decided, strict=True):
        assert (event["actor"], event["phase"], event["status"]) == ("solserver", "breakpoint", "completed")
        assert event["metadata"] == {
            "kind": "breakpoint_engine",
            "decision": row["result"]["decision"],
            "peakGuardrailActive": row["result"]["peakGuardrailActive"],
            "source": row["result"]["source"],
        }


def check_document(document: Row, rows: Sequence[Row], *, state: str = "finished") -> None:
    """Asserts that a run's document counts what its rows say."""
    outcomes = Counter(row["outcome"] for row in rows)
    assert document["state"] == state
    assert document["counts"]["total"] == len(rows)
    for outcome in ("decided", "error", "skipped"):
        assert document["counts"][outcome] == outcomes[outcome], outcome
    results = [row["result"] for row in rows if row["outcome"] == "decided"]
    decisions = Counter(result["decision"] for result in results)
    assert document["summary"]["decisions"] == {word: decisions[word] for word in ("must", "should", "skip")}


class Ran(NamedTuple):
    """A run of a shared namespace: what went in and what came out."""

    rows: Sequence[Row]
    lines: Sequence[bytes]
    policy: RunPolicy


def check_namespace(runs: Sequence[Ran]) -> None:
    """Asserts that the runs of one namespace, taken together, are one history of each thread.

    The order between runs is nobody's to foretell, so it is read off the etags, which have to count each
    thread from 1 to n over all runs. In that order everything is replayed and has to say the same; repeated
    requests and refused turns, which leave no etag of their own, are looked at by the test that sends them.
    """
    history: dict[str, list[tuple[int, Ran, Row]]] = defaultdict(list)
    for run in runs:
        for row in run.rows:
            if row["outcome"] == "decided" and not row["cached"]:
                history[row["result"]["threadId"]].append((int(row["result"]["etag"]), run, row))
    for thread, turns in history.items():
        turns.sort(key=lambda turn: turn[0])
        assert [etag for etag, _, _ in turns] == list(range(1, len(turns) + 1)), thread
        oracle = ThreadOracle()
        for _, run, row in turns:
            oracle.answer(run.lines[row["index"]], row["index"], run.policy).check(row)


def order_of(rows: Iterable[Row], thread: str) -> list[int]:
    """Lists the positions of a thread's decided turns in the order in which they were decided."""
    own = [row for row in rows if row["result"] and row["result"]["threadId"] == thread and not row["cached"]]
    decided = sorted(
        (row for row in own if row["outcome"] == "decided"), key=lambda row: int(row["result"]["etag"])
    )
    return [row["index"] for row in decided]


def restarts(order: Sequence[int]) -> int:
    """Counts how often an order goes back; 0 when it never does.

    >>> restarts([1, 4, 9]), restarts([1, 9, 4, 5])
    (0, 1)
    """
    return sum(later < earlier for earlier, later in pairwise(order))
