"""Translates how a promptfoo configuration is run: settings, and the programs that write its tests."""

from collections.abc import Callable
from typing import Any, Final

from producer.convert.promptfoo.providers import script_of
from producer.convert.promptfoo.suite import Suite, Test
from producer.convert.promptfoo.written import WrittenRunOptions, read
from producer.load.problems import Place
from shared.contracts.code_config import CaseSource

MOST_CONCURRENCY: Final = 100


def to_settings(
    suite: Suite, leave: Callable[[Place, str, str], None], note: Callable[[str], None]
) -> dict[str, Any]:
    """Returns the settings of a bench by their names.

    Args:
        suite: the configuration.
        leave: lists what has no counterpart.
        note: told of what changes neither prompts nor verdicts.
    """
    options = read(WrittenRunOptions, suite.options)
    settings = dict[str, Any]()
    if whole(options.repeat) > 1:
        settings["repeat"] = whole(options.repeat)
    if whole(options.max_concurrency):
        settings["concurrency"] = min(whole(options.max_concurrency), MOST_CONCURRENCY)
    if options.cache is False:
        settings["cache"] = False
    if isinstance(options.timeout_ms, int | float) and options.timeout_ms > 0:
        settings["timeout_s"] = options.timeout_ms / 1_000
    place = suite.place.at("evaluateOptions")
    for key in ("grader", "filterPattern"):
        if key in suite.options:
            leave(place.at(key), key, "runs are given it on the command line")
    for provider in suite.providers:
        if provider.delay_ms:
            pace = f"--rpm {max(1, int(60_000 / provider.delay_ms))}"
            note(f"delay of {provider.label or provider.id}: `proctor limits set MODEL {pace}`")
    return settings


def whole(value: Any) -> int:
    """Returns a whole number; 0 for anything else.

    >>> whole("3"), whole(3.0), whole("a")
    (3, 0, 0)
    """
    return int(value) if isinstance(value, int | float | str) and str(value).isdigit() else 0


def to_sources(suite: Suite, leave: Callable[[Place, str, str], None]) -> tuple[list[Test], list[CaseSource]]:
    """Returns the tests of a configuration, and the programs that write others.

    Args:
        suite: the configuration.
        leave: lists programs that are not run.
    """
    found, sources = list[Test](), list[CaseSource]()
    for test in suite.tests:
        script = script_of(test.code) if test.code else None
        if script:
            given: dict[str, Any] = {script.language: script.path, "returns": "promptfoo"}
            given |= {"config": dict(test.options)} if test.options else {}
            threshold = suite.default.threshold
            given |= {} if threshold is None else {"threshold": threshold}
            sources.append(CaseSource(**given))
        elif test.code:
            reason = "only Python, JavaScript and TypeScript are run: write it as one of them"
            leave(test.place, f"tests {test.code}", reason)
        else:
            found.append(test)
    return found if found or sources else [Test(suite.place)], sources
