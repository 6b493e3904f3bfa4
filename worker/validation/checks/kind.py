"""What a kind of check is, what it looks at, and what it returns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from shared.contracts.checks import Check
from shared.thresholds import reaches
from worker.validation.case_verdict import UntrustedRunner
from worker.validation.extraction import ExtractionError, extract_json


class Answer(NamedTuple):
    """An answer of a model, as far as checks look at it beside its text; None: not recorded."""

    latency_s: float | None = None
    """Time from sending to the last byte; of a cached answer, when it was first given."""
    tokens: int | None = None
    """Tokens of prompt and answer together."""
    cost_usd: float | None = None
    """Cost of the call; of a cached answer, when it was first given."""
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """In OpenAI's shape: `id`, `type`, `function` with `name` and `arguments` as text."""
    refusal: str = ""
    """The provider's own field for a refusal."""
    finish_reason: str = ""
    """Why the answer ended, such as `stop` or `content_filter`."""
    reasoning: str = ""
    """What the model wrote before its answer."""


NOTHING_RECORDED: Final = Answer()
"""An answer of which only the text is known."""


class Score(NamedTuple):
    """What one check found."""

    value: float | None
    """The score, from 0 to 1; None: skipped, and out of the mean."""
    reason: str
    """What was expected, and what was found."""
    detail: Mapping[str, Any] = {}
    """For programs."""
    passed: bool | None = None
    """Whether it passes without an `at_least`; None: its score decides."""
    unavailable: str = ""
    """Why a model could not be asked on whose reply the score depends; the score is not known then."""

    @property
    def error(self) -> str:
        """Why the check could not be evaluated, as a word for programs; empty when it was."""
        return str(self.detail.get("error", ""))


@dataclass(frozen=True, slots=True)
class Parsed:
    """The JSON value in an output, or why there is none."""

    value: Any = None
    """The value; null when there is an error."""
    error: str = ""
    """The sentence that says that there is no JSON, and why; empty when there is."""


@dataclass(slots=True)
class Subject:
    """What the checks of one answer look at; the JSON in the text is parsed once, when it is first needed."""

    text: str
    """The output, or a selected node of its JSON: a text as it is, other values as JSON."""
    answer: Answer = NOTHING_RECORDED
    """The answer of which the text is a part."""
    input: str = ""
    """What the model was asked."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    """The variables of the case."""
    expected: Any = None
    """The object that the case expects, if any."""
    sandbox: UntrustedRunner | None = None
    """Runs patterns and people's functions; None: patterns in this process, functions not at all."""
    is_lenient: bool = False
    """Whether JSON amid prose counts too (`json_extraction: lenient`)."""
    is_node: bool = False
    """Whether it is a selected part of the JSON in an output."""
    _parsed: Parsed | None = None

    @property
    def parsed(self) -> Parsed:
        """The JSON value in the text.

        >>> Subject('{"a": 1}').parsed.value
        {'a': 1}
        >>> Subject("Hi").parsed.error
        'no JSON in the output, which begins: Hi'
        """
        if self._parsed is None:
            try:
                self._parsed = Parsed(extract_json(self.text, lenient=self.is_lenient).value)
            except ExtractionError as error:
                self._parsed = Parsed(error=error.after("no JSON in the output"))
        return self._parsed

    def at_node(self, value: Any) -> "Subject":
        """The same with a part of the JSON in place of the text.

        >>> Subject("…").at_node({"a": 1}).text, Subject("…").at_node("Paris").text
        ('{"a":1}', 'Paris')
        """
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return Subject(
            text,
            self.answer,
            self.input,
            self.vars,
            self.expected,
            self.sandbox,
            is_lenient=self.is_lenient,
            is_node=True,
            _parsed=Parsed(value),
        )


Run = Callable[[Check, Subject], Score]
"""What evaluates a check of one kind."""


class Inner(Protocol):
    """Evaluates the inner checks of a check."""

    def score(self, check: Check, subject: Subject) -> Score:
        """Finds the score of an inner check, and whether it passes; skipped when it is not known yet."""
        ...

    def is_open(self, check: Check, subject: Subject) -> bool:
        """Whether a model has to be asked before the score of an inner check is known."""
        ...


def inner_scores(
    check: Check, subject: Subject, inner: Inner, *, settled_by: float
) -> list[tuple[Check, Score]]:
    """Scores the inner checks, the free ones first.

    Args:
        check: the combination.
        subject: what it looks at.
        inner: evaluates inner checks.
        settled_by: checks that call a model are left out when another has this score, or has an error.
    """
    scores: list[tuple[Check, Score]] = []
    for each in sorted(check.checks, key=lambda each: inner.is_open(each, subject)):
        if inner.is_open(each, subject) and any(
            score.value == settled_by or score.error for _, score in scores
        ):
            break
        scores.append((each, inner.score(each, subject)))
    return scores


def undecided(scores: Iterable[tuple[Check, Score]], *, is_settled: bool) -> Score | None:
    """The score of a check over others that one of them leaves without a verdict; None where there is one.

    Args:
        scores: those of the others.
        is_settled: whether the verdict is the same whatever a model says that could not be asked.
    """
    waiting: tuple[Check, Score] | None = None
    for each, score in scores:
        if score.detail and score.error:
            return no(f"{each.rendered}: {score.reason}", error=score.error)
        if score.unavailable and waiting is None:
            waiting = each, score
    if waiting is None or is_settled:
        return None
    each, score = waiting
    return score._replace(reason=f"{each.rendered}: {score.reason}")


RunNested = Callable[[Check, Subject, Inner], Score]
"""What evaluates a check of a kind that has inner checks."""


@dataclass(frozen=True, slots=True)
class CheckKind:
    """One row of the table of checks."""

    name: str
    """Name of the check in a bench file."""
    passes_when: str
    """For the documentation: when it passes."""
    example: str
    """One check in YAML, for the documentation; a test runs it."""
    example_output: str
    """An output that passes the example."""
    argument: Any = None
    """The type of its argument, for pydantic; None: it takes none."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its own options with their types."""
    run: Run | None = None
    """Evaluates it; None: it has inner checks, or is paid."""
    run_nested: RunNested | None = None
    """The same of a kind with inner checks."""
    is_scored: bool = False
    """Whether its score is any number from 0 to 1, so that it needs `at_least`."""
    at_least: float | None = None
    """The default of `at_least`, of a kind that has one."""
    is_paid: bool = False
    """Whether it calls a model."""
    is_template: bool = True
    """Whether texts in its argument are rendered."""
    takes_bare_word: bool = False
    """Whether it can be written without an argument."""
    needs_sandbox: bool = False
    """Whether it runs what people wrote: patterns or functions."""
    reads_text: bool = True
    """Whether it looks at the output, so that `json_path` can select a part of it."""


PASSED: Final = 1.0
FAILED: Final = 0.0


def yes(reason: str, **detail: Any) -> Score:
    """The check finds what it looks for."""
    return Score(PASSED, reason, detail)


def no(reason: str, **detail: Any) -> Score:
    """The check does not find what it looks for."""
    return Score(FAILED, reason, detail)


def skipped(reason: str) -> Score:
    """The check has nothing to look at."""
    return Score(None, reason)


def unavailable(why: str, **detail: Any) -> Score:
    """A model could not be asked."""
    return Score(None, f"could not be asked: {why}", detail, unavailable=why)


def passes(check: Check, score: Score) -> bool | None:
    """Whether a check passes with a score.

    >>> passes(Check("rouge_l", "a", at_least=0.5), Score(0.5, ""))
    True
    """
    if score.value is None:
        return None
    if check.at_least is not None:
        return reaches(score.value, check.at_least)
    return reaches(score.value, PASSED) if score.passed is None else score.passed
