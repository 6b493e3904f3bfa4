"""Benches as Python values: the keys of a bench file, as fields with types."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

Check = Mapping[str, Any]
"""One check, as `proctor.check` makes it: its kind with its argument, and options."""
Transform = Mapping[str, Any]
"""What changes an answer before it is checked: `json_pointer`, `template`, `python` or `javascript`."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The endpoint of a model, and its options."""

    api_base: str | None = None
    """URL of an endpoint; None: the provider's own."""
    protocol: str | None = None
    """How it is spoken to, such as `anthropic`; None: as the model's name says."""
    http: Mapping[str, Any] | None = None
    """How an application is asked that speaks no such protocol: `url`, `body`, `answer` and so on."""
    api_key_env: str | None = None
    """Variable of the workers' environment that holds the key."""
    prices: Mapping[str, float] | None = None
    """`prompt_per_million` and `completion_per_million`, in US dollars."""
    params: Mapping[str, Any] | None = None
    """Options of calls, such as `max_tokens`."""
    headers: Mapping[str, str] | None = None
    """Headers of requests."""
    model: str | None = None
    """Name of the model at the endpoint, if the bench calls it otherwise."""
    prices_from: Mapping[str, Mapping[str, float]] | None = None
    """Prices from a day on, such as `2026-12-01`."""
    transform: Transform | None = None
    """Changes its answers before they are checked."""
    prompts: Sequence[str] = ()
    """The prompts that it is sent; empty: all."""
    plugin: str | None = None
    """An installed client that asks it."""
    python: str | None = None
    """File beside the bench, and function, that answer instead; needs `allow_code=True`."""
    javascript: str | None = None
    """The same in JavaScript."""
    config: Mapping[str, Any] | None = None
    """What a plug-in or a file is given."""
    env: Sequence[str] = ()
    """Variables of the environment that a file may read."""
    role: str | None = None
    """`check` for code whose functions are asked by `verdict`, and that answers no prompts."""


@dataclass(frozen=True)
class Case:
    """A test case: what is asked, and what makes an answer good."""

    input: str | None = None
    """The user message; None where prompts or `messages` say it."""
    _: KW_ONLY
    id: str | None = None
    """Unique in the bench."""
    expected: Mapping[str, Any] | None = None
    """The JSON object that the output must be."""
    checks: Sequence[Check] = ()
    """Checks of the answer; see `proctor.check`."""
    at_least: float | None = None
    """Mean score of the checks from which the case passes; None: each must pass."""
    reference: str | None = None
    """A good answer in words, for ROUGE-L."""
    regex_pattern: str | None = None
    """Must be found in the output."""
    validator: str | None = None
    """Function of the bench's validators file that must accept the output."""
    messages: Sequence[Mapping[str, Any]] | None = None
    """A conversation instead of `input`."""
    system_prompt: str | None = None
    """System message of this case."""
    vars: Mapping[str, Any] | None = None
    """Values for the templates of prompts and checks."""
    images: Sequence[str] = ()
    """Files that are sent with the last message."""
    tags: Sequence[str] = ()
    """Groups of the case in reports."""
    metadata: Mapping[str, Any] | None = None
    """Facts that are kept with the result."""
    weight: float | None = None
    """How much it counts in means; None: 1."""
    label: str | None = None
    """A person's verdict, `pass` or `fail`, to measure judges by."""
    outputs: Mapping[str, Any] | None = None
    """Recorded outputs by model: nothing is called then."""
    default_checks: Literal[False] | None = None
    """False leaves out those of the bench."""
    paid_checks: Literal["always"] | None = None
    """Whether checks that cost money are asked also where others failed."""
    repeat: int | Mapping[str, int] | None = None
    """How often it is asked; `{"times": 10, "pass": 8}`: eight of ten answers have to pass."""
    only: Mapping[str, Sequence[str]] | None = None
    """The `models` and `prompts` that it is put to; None: all."""
    expand: bool | None = None
    """Whether each combination of its variables that are lists is a case."""
    transform: Transform | None = None
    """Changes its answers before they are checked."""


@dataclass(frozen=True)
class Bench:
    """A bench: its cases, what they are put to, and how."""

    name: str
    """What lists and comparisons call the run."""
    _: KW_ONLY
    cases: Sequence[Case] = ()
    """The test cases."""
    test_cases_file: str | Sequence[str] | None = None
    """Files with more of them."""
    columns: Mapping[str, str] | None = None
    """What columns of these files are, such as `{"question": "input"}`."""
    models: Sequence[str | Mapping[str, Any]] = ()
    """Models to evaluate; none where `run` is given an `app`."""
    system_prompt: str | None = None
    """The first message of each call."""
    prompts: Sequence[str | Mapping[str, Any]] | None = None
    """Templates of what is sent; None: the cases' `input`."""
    description: str | None = None
    """What it is for."""
    vars: Mapping[str, Any] | None = None
    """Values for the templates of all cases."""
    default_checks: Sequence[Check] = ()
    """Checks of all cases, before their own."""
    model_configs: Mapping[str, ModelConfig] | None = None
    """Endpoints and options by model, judges included."""
    params: Mapping[str, Any] | None = None
    """Options of calls to the models."""
    schema: Mapping[str, Any] | str | None = None
    """JSON schema of all outputs, or the path of one."""
    validators_file: str | None = None
    """File with functions that judge outputs."""
    transform: Transform | None = None
    """Changes all answers before they are checked."""
    repeat: int | Mapping[str, int] | None = None
    """How often each case is asked; see `Case.repeat`."""
    paid_checks: Literal["always"] | None = None
    """See `Case.paid_checks`."""
    pairwise: Mapping[str, str] | None = None
    """`model` and `criterion` of a judge that ranks the models, for `proctor rank`."""
    judge_params: Mapping[str, Any] | None = None
    """Options of calls to judges."""
    headers: Mapping[str, str] | None = None
    """Headers of all requests to models."""
    config: Mapping[str, Any] | None = None
    """How it is run: `concurrency`, `temperature`, `judge_model`, `repeat` and so on."""

    def document(self) -> dict[str, Any]:
        """Returns the bench as its file would hold it.

        Raises:
            TypeError: it holds a value that files cannot.

        >>> Bench("b", cases=[Case("Hi", checks=[{"contains": "hi"}])], models=["m"]).document()["test_cases"]
        [{'input': 'Hi', 'checks': [{'contains': 'hi'}]}]
        """
        written: dict[str, Any] = _written(self)
        if cases := written.pop("cases", None):
            written["test_cases"] = cases
        if self.system_prompt is None and self.prompts is None:
            written["prompts"] = [{"id": "input", "user": "{{ input }}"}]
        return written


def document_of(source: Bench | Mapping[str, Any]) -> dict[str, Any]:
    """Returns a bench, or the content of one, as its file would hold it.

    Raises:
        TypeError: it holds a value that files cannot.
    """
    return source.document() if isinstance(source, Bench) else dict(_written(source))


def _written(value: Any) -> Any:
    """Writes dataclasses as mappings, without fields that say nothing.

    Raises:
        TypeError: a value is nothing that files can hold.
    """
    if isinstance(value, Bench | Case | ModelConfig):
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: _written(given) for name, given in pairs if given not in (None, (), [])}
    if isinstance(value, Mapping):
        return {name: _written(given) for name, given in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_written(given) for given in value]
    if not isinstance(value, str | int | float | None):
        hint = (
            "call it, as in check.contains('x')"
            if callable(value)
            else "use texts, numbers, lists or mappings"
        )
        raise TypeError(f"a bench cannot hold {value!r}: {hint}")
    return value
