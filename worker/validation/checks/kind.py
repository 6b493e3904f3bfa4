"""What a kind of check is, what it looks at, and what it returns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from shared.contracts.checks import MAX_NAME_CHARS, PLACE, Check, Transform
from shared.errors import WrongInput
from shared.thresholds import reaches
from worker.validation.case_verdict import UntrustedRunner
from worker.validation.display import show
from worker.validation.extraction import Extracted, ExtractionError, extract, extract_json
from worker.validation.panel import JudgePrompt, Opinion, Vote

Path: TypeAlias = tuple[str | int, ...]
"""Where something stands in checks as they are written."""


class Answer(NamedTuple):
    """An answer of a model, as far as checks look at it beside its text; None: not recorded."""

    latency_s: float | None = None
    """Time from sending to the last byte; of a cached answer, when it was first given."""
    first_token_s: float | None = None
    """Time from sending to the first piece; None unless it was streamed, and answered at the first call."""
    tokens_per_s: float | None = None
    """Tokens of the answer after the first piece, by the time from that to the last byte."""
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


class Rival(NamedTuple):
    """An answer that is compared with others."""

    name: str
    """Which model has given it, and with which prompt."""
    text: str


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
    is_final: bool = False
    """Whether `passed` stands, because the check has compared with `at_least` itself."""

    @property
    def error(self) -> str:
        """Why the check could not be evaluated, as a word for programs; empty when it was."""
        return str(self.detail.get("error", ""))


class Parsed(NamedTuple):
    """The JSON value in an output, or why there is none."""

    value: Any = None
    """The value; null when there is an error."""
    error: str = ""
    """The sentence that says that there is no JSON, and why; empty when there is."""
    found: Extracted | None = None
    """The value with its place in the output; None of an error, and of a part of another value."""


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
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the case."""
    expected: Any = None
    """The object that the case expects, if any."""
    sandbox: UntrustedRunner | None = None
    """Runs patterns and people's functions; None: patterns in this process, functions not at all."""
    is_lenient: bool = False
    """Whether JSON amid prose counts too (`json_extraction: lenient`)."""
    whole: "Subject | None" = None
    """The answer as the model gave it, where the text is a part of it or a transform has made it."""
    is_value: bool = False
    """Whether it is a JSON value, of which `text` is what was written."""
    rivals: Sequence[Rival] = ()
    """All answers to the case, its own first; empty where no check compares them."""
    asked: Any = None
    """What they answer."""
    _parsed: Parsed | None = None
    _object: Parsed | None = None

    @property
    def given(self) -> Any:
        """What JavaScript gets as the output: a JSON value as one, anything else as text."""
        return self.parsed.value if self.is_value and not self.parsed.error else self.text

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

    @property
    def object(self) -> Parsed:
        """The JSON object in the text, which stages 1 to 4 look at; other values are passed over.

        >>> Subject("[1]").object.error
        'no JSON object in the output: the JSON is a list, not an object'
        """
        if self._object is None:
            try:
                found = extract(self.text, lenient=self.is_lenient)
                self._object = Parsed(found.value, found=found)
                if found.source == "whole text":
                    self._parsed = self._object
            except ExtractionError as error:
                self._object = Parsed(error=error.after("no JSON object in the output"))
        return self._object

    @property
    def as_given(self) -> "Subject":
        """The answer as the model gave it."""
        if (whole := self.whole) is None:
            return self
        return replace(
            self,
            text=whole.text,
            is_value=whole.is_value,
            whole=None,
            _parsed=whole.parsed,
            _object=None,
        )

    @staticmethod
    def of_object(value: Any) -> "Subject":
        """An output of which only the object is known, for judges."""
        return Subject("", _object=Parsed(value))

    def at_node(self, value: Any) -> "Subject":
        """The same with a part of the JSON in place of the text.

        >>> Subject("…").at_node({"a": 1}).text, Subject("…").at_node("Paris").text
        ('{"a":1}', 'Paris')
        """
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return replace(
            self,
            text=text,
            is_value=text is not value,
            whole=self.whole or self,
            _parsed=Parsed(value),
            _object=None,
        )


Run: TypeAlias = Callable[[Check, Subject], Score]
"""What evaluates a check of one kind."""
Label: TypeAlias = Callable[[Check], str]
"""Names a check."""


class Inner(Protocol):
    """Evaluates the inner checks of a check."""

    def score(self, check: Check, subject: Subject) -> Score:
        """Finds the score of an inner check, and whether it passes; skipped when it is not known yet."""
        ...

    def is_open(self, check: Check, subject: Subject) -> bool:
        """Whether a model has to be asked before the score of an inner check is known."""
        ...

    def name(self, check: Check) -> str:
        """What a reason calls an inner check."""
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


def undecided(scores: Iterable[tuple[Check, Score]], inner: Inner, *, is_settled: bool) -> Score | None:
    """The score of a check over others that one of them leaves without a verdict; None where there is one.

    Args:
        scores: those of the others.
        inner: names them.
        is_settled: whether the verdict is the same whatever a model says that could not be asked.
    """
    waiting: tuple[Check, Score] | None = None
    for each, score in scores:
        if score.detail and score.error:
            return no(f"{inner.name(each)}: {score.reason}", error=score.error)
        if score.unavailable and waiting is None:
            waiting = each, score
    if waiting is None or is_settled:
        return None
    each, score = waiting
    return score._replace(reason=f"{inner.name(each)}: {score.reason}")


class Held(NamedTuple):
    """A check that stands in the argument of another, as it is written."""

    path: Path
    """Where, from the argument on."""
    raw: Any
    """The check, as YAML has it."""
    of: str = ""
    """The kind whose argument alone stands there, without its name; empty: a whole check does."""
    unnamed: WrongInput | None = None
    """What is wrong with a mapping that names no check; None: what is wrong with it anywhere."""


@dataclass(frozen=True, slots=True)
class Nested:
    """How a kind holds other checks: this alone is what parsing, rendering and rescoring need of it."""

    run: Callable[[Check, Subject, Inner], Score]
    """Evaluates it."""
    split: Callable[[Any], tuple[Any, Sequence[Held]]]
    """Takes an argument apart, into the part that is no check and the checks; raises `WrongInput` with a
    path from the argument on. Without a hint of its own the example of the kind is shown."""
    join: Callable[[Any, Sequence[Any]], Any]
    """Writes the argument again, of that part and the checks as they are written."""
    schema: Mapping[str, Any]
    """JSON Schema of the argument; `ONE_CHECK` and `MANY_CHECKS` are checks in it."""
    is_negation: bool = False
    """Whether it passes when its check does not."""
    has_own_scores: bool = True
    """Whether its `at_least` is enough, so that inner checks with a score need none."""


ONE_CHECK: Final[Mapping[str, Any]] = {"$ref": "#/$defs/check"}
MANY_CHECKS: Final[Mapping[str, Any]] = {"type": "array", "items": ONE_CHECK}


def split_list(kind: str, value: Any) -> tuple[None, list[Held]]:
    """Takes the argument of a kind apart that is a list of checks.

    >>> split_list("all", ["json"])
    (None, [Held(path=(0,), raw='json', of='', unnamed=None)])
    """
    if not isinstance(value, list) or not value:
        raise WrongInput(f"{kind} takes a list of checks, found {show(value)}")
    return None, [Held((at,), each) for at, each in enumerate(value)]


def join_list(_: Any, checks: Sequence[Any]) -> Any:
    """Writes an argument that is a list of checks."""
    return list(checks)


@dataclass(frozen=True, slots=True)
class Before:
    """What a judge is asked first, once for all outputs: the same question comes from the cache."""

    check: Callable[[Check], Check | None]
    """The check that is asked about no output, with the first judge alone; None: nothing has to be asked."""
    asks: "AsksJudges"
    """How it is asked."""
    completed: Callable[[Check, Score], Check]
    """The check with what the reply says."""


@dataclass(frozen=True, slots=True)
class AsksJudges:
    """A kind whose score is what judges say: each is asked the same, and more than half of them decide."""

    prompt: Callable[[Check, Subject], JudgePrompt]
    """What each judge is asked."""
    read: Callable[[Check, str], Opinion]
    """Reads the reply of one."""
    score: Callable[[Check, Sequence[Vote]], Score]
    """The score by all votes; `unavailable` where too few judges could be asked to decide."""
    reply_tokens: int
    """Assumed length of a reply, for forecasts."""
    before: Before | None = None
    """What is asked first; None: nothing."""
    known: Callable[[Check, Subject], Score | None] | None = None
    """The score of what no judge has to be asked about; None: there always is a question."""
    completed: Callable[[Check, Subject], Check] | None = None
    """Puts what judges see beside the output into the check, such as other answers; None: nothing."""
    says_verdict: bool = False
    """Whether the score says if the check passes, so that another `at_least` is another question."""


@dataclass(frozen=True, slots=True)
class AsksEmbeddings:
    """A kind that compares two texts by their embeddings; texts of the same model are embedded together."""

    texts: Callable[[Check, str], tuple[str, str]]
    """The two texts: of the output, and of the check."""
    known: Callable[[str], Score | None]
    """The score of an output that no provider embeds; None of any other."""
    score: Callable[[Check, str, tuple[Sequence[float], Sequence[float]]], Score]
    """The score by the embeddings of the two texts."""


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
    """Evaluates it; None: it holds checks, or asks a model."""
    nested: Nested | None = None
    """How it holds checks; None: it holds none."""
    asks: AsksJudges | AsksEmbeddings | None = None
    """How it asks models, which costs money; None: it asks none."""
    title: Callable[[Check, Label], str] | None = None
    """What a check is called that has no name; None: its kind with its argument or its checks."""
    is_scored: bool = False
    """Whether its score is any number from 0 to 1, so that it needs `at_least`."""
    at_least: float | None = None
    """The default of `at_least`, of a kind that has one."""
    is_template: bool = True
    """Whether texts in its argument are rendered."""
    takes_bare_word: bool = False
    """Whether it can be written without an argument."""
    needs_sandbox: bool = False
    """Whether it runs what people wrote: patterns or functions."""
    calls_function: bool = False
    """Whether its argument is a function of the validators file."""
    is_script: bool = False
    """Whether its argument is JavaScript, perhaps of a file."""
    may_be_file: bool = False
    """Whether the path of a file with JSON may be its argument."""
    needs_stream: bool = False
    """Whether it looks at when pieces of an answer came, so that answers are streamed."""
    compares: bool = False
    """Whether it compares the answers of models and prompts to the case."""
    asks_code: bool = False
    """Whether it asks code that has the role of a check, and no judge."""
    transform: Callable[[Check], Transform | None] | None = None
    """How a part of its argument is made of the output; None: none is."""
    reads_text: bool = True
    """Whether it looks at the output, so that `json_path` can select a part of it."""

    @property
    def is_paid(self) -> bool:
        """Whether it costs money."""
        return self.asks is not None


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


def placed(check: Check) -> str:
    """Names a kind of check, and what part of the output it looks at."""
    return f"{check.check}{PLACE}{check.json_path}" if check.json_path else check.check


def titled(check: Check, argument: Any) -> str:
    """Names a check after its kind and an argument."""
    text = argument if isinstance(argument, str) else msgspec.json.encode(argument).decode()
    return f"{placed(check)}: {' '.join(text[:MAX_NAME_CHARS].split())}"


def passes(check: Check, score: Score) -> bool | None:
    """Whether a check passes with a score.

    >>> passes(Check("rouge_l", "a", at_least=0.5), Score(0.5, ""))
    True
    """
    if score.value is None:
        return None
    if score.is_final:
        return score.passed
    if check.at_least is not None:
        return reaches(score.value, check.at_least)
    return reaches(score.value, PASSED) if score.passed is None else score.passed
