"""What is under way when a fault strikes: a run of each kind, with the upstreams that answer it.

Turns are there twice: with recorded answers, which the oracle of threads decides again, and with replies of a
model, where each call can be counted. Every item says which round it belongs to, so that a long test may use
the same upstreams again and again.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Self

from producer.options import CaseChoice, SubmitOptions
from shared.contracts.live_turns import LiveRun
from shared.contracts.query_run import QueryRun
from shared.kinds import CASES, QUERIES, TURNS, Kind
from shared.names import Outcome
from shared.upstream.model_target import ModelTarget
from tests.support.case_runs import bench
from tests.support.live_desk import MODEL, LiveModel, reply, talks
from tests.support.model_server import ModelServer, Say
from tests.support.query_desk import numbered
from tests.support.scripted_api import ANSWER, ScriptedApi, Step
from tests.support.thread_oracle import Row, check_etags, check_run
from tests.support.trial import woven_turns
from tests.support.turn_files import write_turns

THINKS_S: Final = 0.06
"""How long an upstream takes to answer."""
WAITS_S: Final = 0.4
"""How long it takes until all runs are under way: commands start one after the other, and the first one's run
must not be over by then."""
TOGETHER: Final = 4
"""Calls of one run that may be under way at a time."""
CHUNK_TURNS: Final = 20
"""So small that runs of some hundred turns have a middle."""
COST_USD: Final = 0.0017
"""Of one answer: 11 and 3 tokens at the prices of `bench`."""


TIMED: Final = {**ANSWER, "metadata": {"chunksRetrieved": 1, "latencyMs": 60}}
"""An answer with its own latency: the one that a stopped worker measures would fail the query, rightly."""


class Size(NamedTuple):
    """How much there is to do."""

    turns: int
    """Of each of ten threads, with recorded answers."""
    replies: int
    """Of each of ten threads, with replies."""
    queries: int
    cases: int


WHOLE: Final = Size(turns=60, replies=14, queries=160, cases=160)
"""Two to three seconds of work, so that it has a middle."""
SMALL: Final = Size(turns=2, replies=1, queries=5, cases=5)
"""For the second run, which has to work at once."""


@dataclass(frozen=True)
class Workload:
    """One input, and what has to come of it."""

    name: str
    kind: Kind
    file: Path
    items: int
    options: SubmitOptions
    """Of a submit."""
    arguments: Sequence[str]
    """The same, on the command line."""
    asked: Callable[[], Counter[str]] | None
    """How often its upstream was asked each question; None for a run without one."""
    outcome: Outcome
    """Of each item."""
    check: Callable[[Sequence[Row]], None]
    """Asserts what else its rows have to say, once each item has one."""

    def calls(self) -> Counter[str]:
        """How often its upstream was asked each question; nothing for a run without one."""
        return self.asked() if self.asked else Counter()


class Upstreams:
    """A model and an API on loopback: `with Upstreams() as upstreams: …`."""

    def __init__(self) -> None:
        self.answer_s = THINKS_S
        self.replies = LiveModel(lambda message, _nth: Say(reply(f"re: {message}"), after_s=self.answer_s))
        self.model = ModelServer(lambda _prompt, _nth: Say("ok", after_s=self.answer_s))
        self.api = ScriptedApi(lambda _query, _nth: Step(body=TIMED, after_s=self.answer_s))
        self._open = ExitStack()

    def __enter__(self) -> Self:
        for each in (self.replies, self.model, self.api):
            self._open.enter_context(each)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def leave(self) -> None:
        """Stops the models; their ports refuse connections."""
        for each in (self.replies, self.model):
            each.leave()

    def come_back(self) -> None:
        """Starts the models again, at the same ports."""
        for each in (self.replies, self.model):
            each.come_back()

    def clear(self) -> None:
        """Forgets what was asked so far."""
        for each in (self.replies, self.model, self.api):
            each.requests.clear()

    def workload(self, name: str, folder: Path, mark: str, size: Size = WHOLE) -> Workload:
        """Writes an input.

        Args:
            name: one of `NAMES`.
            folder: for its files.
            mark: of its items, which no other workload of these upstreams has.
            size: how much of it.
        """
        own = folder / f"{name.replace(' ', '-')}-{mark}"
        own.mkdir(parents=True)
        return BUILDERS[name](self, own, mark, size)


def _asked(questions: Sequence[str], mark: str) -> Counter[str]:
    """Counts the questions of one round."""
    return Counter(question for question in questions if f"{mark} " in question)


def _turns(_upstreams: Upstreams, folder: Path, mark: str, size: Size) -> Workload:
    file = write_turns(folder / f"{mark}.jsonl", woven_turns(10, size.turns, tag=mark))
    lines = file.read_bytes().splitlines()
    return Workload(
        "turns",
        TURNS,
        file,
        len(lines),
        SubmitOptions(chunk_turns=CHUNK_TURNS, await_disk=False, idempotency_key=f"turns {mark}"),
        (),
        None,
        Outcome.DECIDED,
        lambda rows: _ignore(check_run(rows, lines)),
    )


def _ignore(_value: object) -> None:
    """Drops what a check returns."""


def _replies(upstreams: Upstreams, folder: Path, mark: str, size: Size) -> Workload:
    turns = [{**turn, "message": f"{mark} {turn['message']}"} for turn in talks(10, size.replies)]
    file, place = write_turns(folder / f"{mark}.jsonl", turns), upstreams.replies.api_base
    live = LiveRun(ModelTarget(MODEL, api_base=place), use_cache=False, concurrency=TOGETHER)

    def check(rows: Sequence[Row]) -> None:
        check_etags(rows)
        for row, turn in zip(rows, turns, strict=True):
            assert row["result"]["response"] == f"re: {turn['message']}", row

    return Workload(
        "live turns",
        TURNS,
        file,
        len(turns),
        SubmitOptions(
            chunk_turns=CHUNK_TURNS, await_disk=False, live=live, idempotency_key=f"live turns {mark}"
        ),
        ("--model", MODEL, "--api-base", place, "--no-cache"),
        lambda: _asked([each.message for each in upstreams.replies.asked], mark),
        Outcome.DECIDED,
        check,
    )


def _queries(upstreams: Upstreams, folder: Path, mark: str, size: Size) -> Workload:
    asked = [{**each, "query": f"{mark} {each['query']}"} for each in numbered(size.queries)]
    file = folder / f"{mark}.json"
    file.write_text(json.dumps({"version": "1.0", "queries": asked}))
    return Workload(
        "queries",
        QUERIES,
        file,
        len(asked),
        SubmitOptions(
            queries=QueryRun(api_url=upstreams.api.url, concurrency=TOGETHER),
            await_disk=False,
            idempotency_key=f"queries {mark}",
        ),
        ("--api-url", upstreams.api.url, "--concurrency", str(TOGETHER)),
        lambda: _asked([request.query for request in upstreams.api.requests], mark),
        Outcome.PASSED,
        _ignore,
    )


def _cases(upstreams: Upstreams, folder: Path, mark: str, size: Size) -> Workload:
    written = [{"input": f"{mark} question {at}", "regex_pattern": "ok"} for at in range(size.cases)]
    config = {"judge_model": None, "concurrency": TOGETHER}
    file = bench(folder, upstreams.model, written, models=["alpha"], config=config)
    file = file.rename(folder / f"{mark}.yaml")

    def check(rows: Sequence[Row]) -> None:
        # Also of what a dead worker had been answered but not written down: a cached answer keeps its cost.
        wrong = [row for row in rows if abs(row["cost_usd"] - COST_USD) > COST_USD / 1e6]
        assert not wrong, wrong[:3]

    return Workload(
        "cases",
        CASES,
        file,
        len(written),
        SubmitOptions(cases=CaseChoice(), await_disk=False, idempotency_key=f"cases {mark}"),
        (),
        lambda: _asked([request.prompt for request in upstreams.model.requests], mark),
        Outcome.PASSED,
        check,
    )


BUILDERS: Final[Mapping[str, Callable[[Upstreams, Path, str, Size], Workload]]] = {
    "cases": _cases,
    "queries": _queries,
    "live turns": _replies,
    "turns": _turns,
}
"""In the order in which they are submitted: turns with recorded answers are done fastest."""
NAMES: Final = tuple(BUILDERS)
ASKING: Final = NAMES[:3]
"""Those with an upstream, which take seconds however large their chunks are."""
