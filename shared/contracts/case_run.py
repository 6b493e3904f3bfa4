"""The settings of a cases run, and the stored form of its items: both sides read these and nothing else.

The producer writes the settings into the run's snapshot at submit, and workers read them, whatever their
environment says. No key is part of it: only the names of the workers' variables that hold one. The validators
travel as source text with its hash, the schema as JSON: workers may have none of the files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Literal

import msgspec

from shared.contracts.case_vocabulary import DEFAULT_JUDGE, Label

SNAPSHOT_KEY: Final = "cases"
"""Key of these settings in a run's snapshot."""
GIT_KEY: Final = "git"
"""Key in a run's snapshot of the commit of the configuration, as `producer.load.cases.git_info` gives it."""
DEFAULT_CONCURRENCY: Final = 5
"""Calls that may be under way at a time where the configuration says nothing."""
DEFAULT_TEMPERATURE: Final = 0.1
"""Sampling temperature of models where the configuration says nothing."""
DEFAULT_TIMEOUT_S: Final = 120.0
"""Hard limit of one call where the configuration says nothing."""

WRITTEN_IF_USED: Final = (
    "prompts", "templates", "calls", "judge_params", "model_headers", "check_models", "pairwise",
    "written_at", "shared_vars",
)  # fmt: skip
"""Settings that a snapshot has only where a run uses them."""

FREEFORM: Final = "freeform"
"""All cases have only an input: outputs are shown, nothing is checked."""
STANDARD: Final = "standard"
"""At least one case has a criterion."""

Mode = Literal["freeform", "standard"]


@dataclass(frozen=True, slots=True)
class Validators:
    """A validators file as it was read at submit."""

    source: str
    """Its text."""
    sha256: str
    """SHA-256 of the text in UTF-8, as hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is called, if not at its provider's own URL."""

    api_base: str = ""
    """URL of an OpenAI-compatible endpoint; empty: the provider's own."""
    api_key_env: str = ""
    """The variable of the worker's environment that holds the key; empty: the provider's usual one, and none
    for an `api_base`."""


@dataclass(frozen=True, slots=True)
class Template:
    """The templates of a prompt as they were at submit, for people and comparisons; items are rendered."""

    system: str | None = None
    """Of the system message; None: the bench's is sent."""
    messages: Sequence[Mapping[str, Any]] | None = None
    """Of the messages after it; None: a case's input is sent."""

    @property
    def user(self) -> str | None:
        """The user message where it is the only one and a text.

        >>> Template(messages=[{"role": "user", "content": "Capital of {{ country }}?"}]).user
        'Capital of {{ country }}?'
        """
        if self.messages is None or len(self.messages) != 1 or self.messages[0]["role"] != "user":
            return None
        content = self.messages[0]["content"]
        return content if isinstance(content, str) else None


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The settings of a cases run."""

    name: str
    """As the configuration names it."""
    system_prompt: str
    """The first message of each call."""
    models: Mapping[str, Endpoint] = field(default_factory=dict)
    """The models of the run in their order; also those that only have recorded outputs."""
    judge: Endpoint = field(default_factory=Endpoint)
    """The judge's endpoint."""
    schema: Any = None
    """The JSON schema that all outputs must keep to; None for none."""
    validators: Validators | None = None
    """The user's own checks."""
    judge_model: str | None = DEFAULT_JUDGE
    """The judge of outputs that are not the expected one; None: none, or a panel."""
    panel: Mapping[str, Endpoint] = field(default_factory=dict)
    """Judges, in their order, of whom more than half must find an output equivalent; instead of
    `judge_model`."""
    temperature: float = DEFAULT_TEMPERATURE
    """Sampling temperature of the models; the judge's is 0."""
    concurrency: int = DEFAULT_CONCURRENCY
    """Calls that may be under way at a time in the whole fleet."""
    together: int = 1
    """Items of one chunk that may be under way at a time."""
    max_cost: float | None = None
    """US dollars that the run may cost, judge included; None for no limit."""
    timeout_s: float = DEFAULT_TIMEOUT_S
    """Hard limit of one call."""
    stream: bool = False
    """Whether answers are taken piece by piece, so that the time to the first token is known."""
    cache: bool = True
    """Whether equal questions share an answer."""
    repeat: int = 1
    """How often each case is put to each model."""
    mode: Mode = STANDARD
    """`freeform` when no case has a criterion."""
    json_extraction: Literal["strict", "lenient"] = "strict"
    """`lenient` also finds an object amid prose, without a fence."""
    prompts: Sequence[str] = ()
    """Ids of the prompts, in their order; empty: cases are sent as they are."""
    templates: Mapping[str, Template] = field(default_factory=dict)
    """The prompts by their ids; empty also for a run of an earlier version."""
    calls: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    """`params` and `headers` of calls by model and prompt id (`""`: without prompts), merged; a `temperature`
    among them goes before the run's, and null means that none is sent."""
    judge_params: Mapping[str, Any] = field(default_factory=dict)
    """Options of calls to judges."""
    model_headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Headers of requests to judges and to the models that checks name."""
    check_models: Mapping[str, Endpoint] = field(default_factory=dict)
    """The endpoints of models that checks name."""
    written_at: Mapping[str, str] = field(default_factory=dict)
    """Where the `api_base` of a model is written, for people: file and line, or the option."""
    shared_vars: str = ""
    """Name of the run's file with the variables of the bench; empty: each item has them."""
    pairwise: Mapping[str, str] = field(default_factory=dict)
    """`model` and `criterion` by which `proctor rank` compares answers; empty: those of its options."""
    recorded: bool = False
    """Whether outputs were recorded before: no model under test is called, whatever is missing."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    cases: int = 0
    """How many cases there are; a run has one item for each case, model and repetition."""
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By model, where the usual ones are not known: `prompt_per_million` and `completion_per_million`, in US
    dollars per million tokens."""

    @property
    def judges(self) -> Mapping[str, Endpoint]:
        """The judges of outputs that are not the expected one; a single judge is a panel of one.

        >>> list(CaseRun("bench", "Answer.", judge_model="a").judges)
        ['a']
        >>> list(CaseRun("bench", "Answer.", judge_model=None).judges)
        []
        """
        return self.panel or ({self.judge_model: self.judge} if self.judge_model else {})

    def as_snapshot(self) -> dict[str, Any]:
        """Returns what a snapshot keeps; the schema is not copied: copying stops at Python's depth."""
        settings = {each.name: getattr(self, each.name) for each in fields(self)}
        settings["models"] = {model: asdict(endpoint) for model, endpoint in self.models.items()}
        settings["judge"] = asdict(self.judge)
        settings["panel"] = {model: asdict(endpoint) for model, endpoint in self.panel.items()}
        settings["check_models"] = {model: asdict(endpoint) for model, endpoint in self.check_models.items()}
        settings["templates"] = {name: asdict(each) for name, each in self.templates.items()}
        settings["validators"] = asdict(self.validators) if self.validators else None
        return {name: value for name, value in settings.items() if value or name not in WRITTEN_IF_USED}

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> "CaseRun":
        """Reads it back; keys of a later version are ignored.

        >>> run = CaseRun("bench", "Answer.", {"openai/gpt-4o": Endpoint()}, validators=Validators("…", "ab"))
        >>> CaseRun.from_snapshot({"cases": run.as_snapshot() | {"from_the_future": 1}}) == run
        True
        """
        known = {each.name for each in fields(cls)}
        found = {name: value for name, value in snapshot[SNAPSHOT_KEY].items() if name in known}
        for key in ("models", "panel", "check_models"):
            places = found.get(key) or {}
            found[key] = {model: Endpoint(**_known(Endpoint, place)) for model, place in places.items()}
        found["judge"] = Endpoint(**_known(Endpoint, found.get("judge") or {}))
        if templates := found.get("templates"):
            found["templates"] = {
                name: Template(**_known(Template, each)) for name, each in templates.items()
            }
        if found.get("validators"):
            found["validators"] = Validators(**_known(Validators, found["validators"]))
        return cls(**found)


def read_shared_vars(run: CaseRun, read: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Reads the variables that the items of a run share; empty if there are none.

    Args:
        run: the settings.
        read: reads a file of the run by its name.
    """
    stored = read(run.shared_vars) if run.shared_vars else None
    return {} if stored is None else _decode(stored)


def _known(kind: type[Endpoint | Template | Validators], values: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves out keys of a later version."""
    known = {each.name for each in fields(kind)}
    return {name: value for name, value in values.items() if name in known}


class Image(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An image that is sent with a case; stored once with the run, under the hash of its bytes."""

    media_type: str
    """Such as `image/png`."""
    data: bytes
    """The file."""
    name: str = ""
    """What the file was called, for people; of several with the same bytes, the first."""


class Recorded(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An output that was recorded before the run, with the figures of its call as far as they are known."""

    output: str
    """The answer of the model."""
    latency_seconds: float | None = None
    """Time from sending to the last byte."""
    cost_usd: float | None = None
    """Cost of the call."""
    prompt_tokens: int | None = None
    """As the provider counted them."""
    completion_tokens: int | None = None
    """As the provider counted them."""
    reasoning: str = ""
    """What the model thought before it answered; never judged."""
    tool_calls: list[dict[str, Any]] = []
    """What the model called, in OpenAI's form."""
    refusal: str = ""
    """What the provider's field for a refusal says."""
    cached: bool = False
    """Whether it came from the cache: its latency is that of the first call, and not counted again."""


class CasePayload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One item of a cases run: one case, put to one model, one time."""

    case: int
    """Position of the case among the run's, from 0."""
    model: str
    """One of the run's models."""
    input: str
    """What the model is sent."""
    repeat: int = 0
    """Which repetition it is, from 0."""
    id: str | None = None
    """The case's own name."""
    recorded: Recorded | None = None
    """The output recorded before; None in a recorded run: there is none."""
    prompt_id: str | None = None
    """The prompt that it was rendered by."""
    system: str | None = None
    """The system message; None: the run's."""
    messages: list[dict[str, Any]] | None = None
    """The conversation after the system message; None: only `input`."""
    images: list[str] = []
    """Hashes of the images that are sent with the last message."""
    vars: dict[str, Any] = {}
    """Variables of the case, those of the bench among them unless the run stores these once."""
    tags: list[str] = []
    """What the case belongs to."""
    metadata: dict[str, Any] = {}
    """Facts about the case."""
    weight: float = 1.0
    """How much it counts in means."""
    criteria: dict[str, Any] = {}
    """What a good answer looks like: the fields of `shared.contracts.cases.Criteria` that are given."""

    @property
    def expected(self) -> dict[str, Any] | None:
        """The object that the output must be."""
        return self.criteria.get("expected")

    @property
    def label(self) -> Label | None:
        """The verdict of a person on the output."""
        return self.criteria.get("label")

    @property
    def name(self) -> str:
        """What people call the case: its id; without one, its number.

        >>> CasePayload(2, "m", "Hi").name, CasePayload(2, "m", "Hi", id="fr").name
        ('case 3', 'fr')
        """
        return self.id or f"case {self.case + 1}"

    @property
    def first(self) -> str:
        """The item in words, as people see it in the queue.

        >>> CasePayload(2, "openai/gpt-4o", "Hi").first
        'case 3 · openai/gpt-4o'
        >>> CasePayload(2, "openai/gpt-4o", "Hi", repeat=1).first
        'case 3 · openai/gpt-4o #2'
        """
        return f"{self.name} · {self.asked}"

    @property
    def asked(self) -> str:
        """Model, prompt and repetition: what follows the name of the case."""
        prompt = f" · {self.prompt_id}" if self.prompt_id is not None else ""
        return f"{self.model}{prompt}" + (f" #{self.repeat + 1}" if self.repeat else "")


_OWN_KEYS: Final = frozenset(CasePayload.__struct_fields__) - {"criteria"}
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def encode_case(payload: CasePayload) -> bytes:
    """Writes an item as it travels: one flat object, in which criteria stand beside the item's own keys.

    >>> encode_case(CasePayload(0, "m", "Hi", criteria={"regex_pattern": "^H"}))
    b'{"case":0,"model":"m","input":"Hi","regex_pattern":"^H"}'
    """
    item = msgspec.to_builtins(payload)
    return _encode(item | item.pop("criteria", {}))


def decode_case(payload: bytes) -> CasePayload:
    r"""Reads an item; what is none of its own keys is a criterion.

    >>> item = CasePayload(0, "m", "Hi", recorded=Recorded(""), criteria={"label": "pass"})
    >>> decode_case(encode_case(item)) == item
    True
    """
    item = _decode(payload)
    own = {name: item.pop(name) for name in _OWN_KEYS & item.keys()}
    return msgspec.convert({**own, "criteria": item}, CasePayload)
