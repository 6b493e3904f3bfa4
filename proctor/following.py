"""Runs that are begun here: submitted, followed event by event, or run to their end."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from json import dumps, loads
from os import PathLike, fspath, urandom
from typing import TYPE_CHECKING, Any

from proctor.benches import Bench, document_of
from proctor.program import Option, Program, arguments_of, document, error_of, started
from proctor.progress import progress
from proctor.runs import ENDED, Run

if TYPE_CHECKING:
    from proctor.app import App

Source = Bench | str | PathLike[str] | Mapping[str, Any]
"""A bench as a value, the path of a file, or the content of one."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a run."""

    name: str
    """Is `loading`, `submitted`, `waiting`, `progress`, `failure` or `finished`."""
    fields: Mapping[str, Any] = field(repr=False)
    """The line of `--jsonl`, whole."""

    @property
    def run_id(self) -> str | None:
        """The run; None before it has an id."""
        return self.fields.get("run_id")

    @property
    def done(self) -> int:
        """Items with a result."""
        if "counts" in self.fields:
            return int(sum(self.fields["counts"].values())) - self.total
        return int(self.fields.get("done", 0))

    @property
    def total(self) -> int:
        """Items of the run."""
        return int(self.fields.get("counts", self.fields).get("total", 0))

    def __str__(self) -> str:
        if self.name == "finished":
            return str(Run(str(self.run_id), self.fields))
        return f"{self.name} {self.run_id or ''}".rstrip()


class Watch:
    """The events of a run, to be read with `for` or `async for`; the last one is `finished`.

    Args:
        arguments: of the command that prints them.
        text: what it reads.
    """

    def __init__(self, arguments: list[str], text: str | None = None) -> None:
        self._arguments, self._text = arguments, text

    def __iter__(self) -> Iterator[Event]:
        """Yields events as they come; leaving the loop early stops what was started for them.

        Raises:
            ProctorError: the program refused the request.
        """
        with self._started() as program:
            yield from _events_of(program)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yields events as they come, and reads them in a thread."""
        import asyncio  # noqa: PLC0415 - start-up: only asynchronous programs need it

        with self._started() as program:
            events = _events_of(program)
            try:
                while (event := await asyncio.to_thread(next, events, None)) is not None:
                    yield event
            finally:  # a thread that still reads ends with the program
                await asyncio.to_thread(program.stop)

    def _started(self) -> AbstractContextManager[Program]:
        return started([*self._arguments, "--jsonl", "-q"], text=self._text)


def watch(run: Run | str) -> Watch:
    """Follows a run until its end."""
    return Watch(["watch", getattr(run, "id", str(run))])


def submit(source: Source, **options: Option) -> Run:
    """Submits a bench or a file to running workers, and returns its run at once.

    Args:
        source: what to run.
        options: those of `proctor submit`: `name="nightly"`, `max_cost=2.0`.

    Raises:
        ProctorError: it was refused.
    """
    arguments, text = _input(source)
    return Run(document(["submit", *arguments, *arguments_of(options)], text=text)["run_id"])


def run(
    source: Source,
    *,
    app: "App | None" = None,
    checks: Sequence[Callable[..., Any]] = (),
    on_event: Callable[[Event], None] | None = None,
    **options: Option,
) -> Run:
    """Runs a bench or a file to its end, with workers of its own where none are alive.

    Args:
        source: what to run.
        app: the application under test, instead of models: a function that takes the text of the last
            message, or the list of messages if its first parameter is called `messages`, and returns a text,
            a JSON object, or pieces of text. It may be a coroutine.
        checks: functions that check the answers to all cases: each takes the text of an answer, or this and a
            `CheckedAnswer`, and returns a bool, a score from 0 to 1, or one of these with a reason.
        on_event: is called with each event; by default a terminal or a notebook shows how far the run is.
        options: those of `proctor run`: `max_cost=2.0`, `no_cache=True`, `repeat=3`.

    Returns:
        The run, whether it passed or not; see `verdict`.

    Raises:
        ProctorError: it was refused, or nothing could be run.
    """
    with ExitStack() as serving:
        if app is not None or checks:
            source, options = _with_functions(source, options, app, checks, serving)
        arguments, text = _input(source)
        tell = on_event or progress()
        for event in Watch(["run", *arguments, *arguments_of(options)], text):
            tell(event)
    return Run(str(event.run_id), event.fields)


def _input(source: Source) -> tuple[list[str], str | None]:
    """Returns the arguments that name the input, and what is read from stdin.

    Raises:
        TypeError: it is no bench and no path, or the bench holds what JSON has no form for.
    """
    if isinstance(source, Bench | Mapping):
        return ["-", "--kind=cases"], dumps(document_of(source))
    if not isinstance(source, str | PathLike):
        raise TypeError(f"the source is {source!r}: give a Bench, the content of one as a mapping, or a path")
    return [fspath(source)], None


def _with_functions(
    source: Source,
    options: dict[str, Option],
    app: "App | None",
    checks: Sequence[Callable[..., Any]],
    serving: ExitStack,
) -> tuple[Source, dict[str, Option]]:
    """Returns a bench and options that ask served functions instead of models, and as judges.

    Raises:
        TypeError: there are checks, and the bench is a file.
    """
    from proctor.app import CheckPrompt, judge_of, served  # noqa: PLC0415 - start-up: for functions only

    options = {"no_cache": True, **options}
    if not isinstance(source, Bench | Mapping):
        if app is None or checks:
            raise TypeError(f"checks= need a Bench or its content as a mapping, not the path {source!s}")
        url = serving.enter_context(served(app))
        return source, {**options, "model": _name_of(app), "api_base": url, "price": "0/0"}
    bench = document_of(source)
    configs = dict(bench.get("model_configs", {}))

    def serve(name: str, function: "App") -> str:
        url = serving.enter_context(served(function))
        configs[name] = {"api_base": url, "prices": {"prompt_per_million": 0, "completion_per_million": 0}}
        return name

    if app is not None:
        bench["models"] = [serve(_name_of(app), app)]
    rows = list(bench.get("default_checks", ()))
    if callable(checks):
        raise TypeError("checks= takes several functions: write checks=[my_check]")
    for name, check in _named(checks):
        prompt = CheckPrompt(f"<{urandom(16).hex()}>")
        judge = serve(f"check.{name}", judge_of(check, prompt, name))
        rows.append({"rubric": name, "name": name, "model": judge, "prompt": str(prompt)})
    return {**bench, "model_configs": configs, **({"default_checks": rows} if rows else {})}, options


def _named(functions: Sequence[Callable[..., Any]]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yields functions with names that differ.

    >>> [name for name, _ in _named([len, len, max])]
    ['len', 'len 2', 'max']
    """
    seen = Counter[str]()
    for function in functions:
        name = _name_of(function)
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} {seen[name]}", function


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _events_of(program: Program) -> Iterator[Event]:
    """Yields the events that a command prints.

    Raises:
        ProctorError: it refused the request, or ended without a last event.
    """
    is_over = False
    for line in program.out:
        event = _event_of(loads(line))
        is_over = is_over or event.name == "finished"
        yield event
    code = program.end()
    if not is_over or code not in ENDED:
        raise program.failure(code)


def _event_of(line: Mapping[str, Any]) -> Event:
    if "error" in line and line.get("event") == "error":
        raise error_of(line["error"], line["exit"])
    return Event(line["event"], line)
