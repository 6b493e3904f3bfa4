"""The checks `plugin.NAME`: functions of installed packages, which run in the worker and in no sandbox."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from threading import Thread
from typing import Any, Final

import msgspec

from shared import plugins
from shared.contracts.checks import Check
from shared.contracts.code_config import is_plugin_name
from worker.validation.checks.kind import CheckKind, Score, Subject, no
from worker.validation.checks.python import context_of, score_of, stopped

PREFIX: Final = "plugin."
"""Before the name of an entry point of `proctor.checks`."""
CALL_S: Final = 60.0
"""Time that a call may take."""
MOST_CALLS: Final = 4
"""Calls of a plug-in at a time, those included that have exceeded it: no thread can be ended."""
_calls: Final = defaultdict[str, set[object]](set)
"""Those that go on, by plug-in."""


def plugin_kind(name: str) -> CheckKind | None:
    """Returns the kind of check that a name means, installed or not; None if it is no plug-in's.

    >>> plugin_kind("plugin.polite").name, plugin_kind("contains"), plugin_kind("plugin.")
    ('plugin.polite', None, None)
    """
    if not name.startswith(PREFIX) or not is_plugin_name(name.removeprefix(PREFIX)):
        return None
    return CheckKind(
        name,
        "the function of an installed package says so",
        f"{{{name}: argument}}",
        "",
        argument=Any,
        run=_run,
        takes_bare_word=True,
    )


def _run(check: Check, subject: Subject) -> Score:
    """Calls `f(output, argument, context)`: a bool, a number from 0 to 1, or (either, reason)."""
    name = check.check.removeprefix(PREFIX)
    try:
        function = plugins.load("checks", name)
    except LookupError as error:
        return no(str(error), error="unavailable")
    own = msgspec.json.decode(msgspec.json.encode(context_of(subject)))  # a copy: it may change what it gets
    scores, number = list[Score](), object()

    def call() -> None:
        """Leaves the score."""
        try:
            scores.append(score_of(name, function(subject.text, check.argument, own)))
        except BaseException as error:  # noqa: BLE001 - whatever stops a function, it did not accept
            scores.append(stopped(f"plug-in {name}", error))
        finally:
            _calls[name].discard(number)

    if len(_calls[name]) >= MOST_CALLS:
        return no(f"plug-in {name} was not called: {MOST_CALLS} of its calls hang", error="timeout")
    _calls[name].add(number)
    thread = Thread(target=call, name=f"plug-in {name}", daemon=True)  # one that hangs delays no end
    thread.start()
    thread.join(CALL_S)
    return scores[0] if scores else no(f"plug-in {name} timed out after {CALL_S:g} s", error="timeout")


class CheckKinds(Mapping[str, CheckKind]):
    """The kinds of checks by name: the rows of the table, and `plugin.NAME` of any name.

    A bench may name a plug-in that only workers have, so that being installed is no condition.

    Args:
        rows: of the table, by name.
    """

    def __init__(self, rows: Mapping[str, CheckKind]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> CheckKind:
        found = self._rows.get(name) or plugin_kind(name)
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
