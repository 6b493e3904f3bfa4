"""The contract of `bench.config.yaml`: every key, its default and its limit.

Strict at the door, as all contracts: an unknown key is refused, since a misspelt `expected` would turn a
check into none. What needs other files (paths, validators, the schema) is checked by whoever reads them.
Longer than 500 lines, because all keys of a file are in one place.

>>> config = BenchConfig.model_validate(
...     {"name": "n", "system_prompt": "s", "models": ["m"], "judge_model": None}
... )
>>> config.settings.judge_model is None, config.settings.concurrency
(True, 5)
"""

from datetime import date
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from shared.contracts.call_options import Headers, Params
from shared.contracts.case_run import DEFAULT_CONCURRENCY, Quorum
from shared.contracts.case_vocabulary import DEFAULT_JUDGE, MAX_INPUT_CHARS, MOST_JUDGES
from shared.contracts.cases import MAX_ID_CHARS, Criteria, Encodable, JsonList, JsonObject, Text, is_json
from shared.contracts.code_config import CaseFiles, Code
from shared.contracts.http_config import HttpConfig
from shared.contracts.merged_options import merge_headers
from shared.contracts.prompts import Conversation, Prompts
from shared.contracts.transform_config import TransformConfig
from shared.upstream.addresses import NO_ADDRESS, address_problem
from shared.upstream.model_target import DEFAULT_TIMEOUT_S, FLEX_TIMEOUT_S, ModelTarget
from shared.upstream.prices import FLEX, GivenPrice

MOST_CONCURRENCY: Final = 100
"""Calls at a time that a configuration may ask for."""
MAX_CRITERION_CHARS: Final = 10_000
MOST_REPEATS: Final = 1_000
"""How often a case may be put to a model."""
MOST_IMAGES: Final = 20
"""Images of a case."""
DOCUMENTED: Final = ("concurrency", "temperature", "judge_model", "max_cost")
"""Settings that may stand on the first level only where there is no `config` block, as documented."""


class _Strict(BaseModel):
    """What all parts have in common."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


def _mapping(value: Any) -> Any:
    """A key without a value, as in `config:`, is an empty mapping."""
    return {} if value is None else value


def _list(value: Any) -> Any:
    """A key without a value, as in `test_cases:`, is an empty list."""
    return [] if value is None else value


def _web_address(text: str) -> str:
    """Refuses what is no HTTP URL, or contains a secret, which must not be stored."""
    problem = address_problem(text)
    if problem == NO_ADDRESS:
        raise PydanticCustomError("url", "not a web address: write http://host:port/v1")
    if problem:
        raise PydanticCustomError(
            "url_secret",
            "{problem}: name the variable that holds the key in api_key_env",
            {"problem": problem},
        )
    return text.rstrip("/")


_PATH_OR_OBJECT: Final[dict[str, Any]] = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "null"}]}


def _schema(value: Any) -> Any:
    """Refuses what is neither a path nor an object."""
    if isinstance(value, dict):
        return is_json(value)
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise PydanticCustomError(
        "schema", "neither the path of a file nor a schema: write schema: {type: object, …}"
    )


def _variable(text: str) -> str:
    """Refuses what is no variable's name, above all keys themselves."""
    if not (text.isascii() and text.isidentifier()):
        raise PydanticCustomError(
            "variable", "not the name of a variable: name the variable that holds the key, not the key"
        )
    return text


def _each_once(judges: list[str]) -> list[str]:
    """Refuses a judge with two votes."""
    twice = sorted({judge for judge in judges if judges.count(judge) > 1})
    if twice:
        raise PydanticCustomError("twice", "{judge} stands twice: a judge has one vote", {"judge": twice[0]})
    return judges


class ColumnTarget(NamedTuple):
    """What a column of a data file is: a field of a case, or a member of one that is an object."""

    field: str
    member: str = ""

    @classmethod
    def named(cls, name: str) -> "ColumnTarget | None":
        """Reads a name such as `input` or `vars.country`; None for all others.

        >>> ColumnTarget.named("vars.country"), ColumnTarget.named("input"), ColumnTarget.named("country")
        (ColumnTarget(field='vars', member='country'), ColumnTarget(field='input', member=''), None)
        """
        head, _, member = name.partition(".")
        if member and head in MEMBERED:
            return cls(head, member)
        return cls(name) if name in COLUMN_FIELDS else None

    def __str__(self) -> str:
        return f"{self.field}.{self.member}" if self.member else self.field


def _is_target(name: str) -> str:
    """Refuses what is no field of a case."""
    if ColumnTarget.named(name) is None:
        raise PydanticCustomError(
            "column",
            "not a field of a case: write one of {known}, vars.NAME or metadata.NAME",
            {"known": ", ".join(COLUMN_FIELDS)},
        )
    return name


TargetName = Annotated[Text, AfterValidator(_is_target)]
Panel = Annotated[list[Text], Field(min_length=1, max_length=MOST_JUDGES), AfterValidator(_each_once)]


def _day(text: str) -> str:
    """Refuses what is no day as ISO 8601 writes it."""
    try:
        is_day = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_day = False
    if not is_day:
        raise PydanticCustomError("day", "not a day: write for example 2026-12-01")
    return text


class Price(_Strict):
    """What a model costs, in US dollars per million tokens."""

    prompt_per_million: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    """Of its input."""
    completion_per_million: float = Field(ge=0, le=1_000_000, allow_inf_nan=False)
    """Of its output."""
    cached_prompt_per_million: float | None = Field(None, ge=0, le=1_000_000, allow_inf_nan=False)
    """Of input that the provider has in its cache; null: as other input."""
    cache_write_per_million: float | None = Field(None, ge=0, le=1_000_000, allow_inf_nan=False)
    """Of input that the provider puts into its cache; null: as other input."""
    reasoning_per_million: float | None = Field(None, ge=0, le=1_000_000, allow_inf_nan=False)
    """Of output that is reasoning; null: as other output."""
    flex_factor: float = Field(1.0, ge=0, le=100, allow_inf_nan=False)
    """By what the prices are multiplied for answers of the service tier `flex`."""
    batch_factor: float = Field(1.0, ge=0, le=100, allow_inf_nan=False)
    """By what they are multiplied for answers of batches."""

    @property
    def given(self) -> GivenPrice:
        """The price as it is stored with a run."""
        return msgspec.convert(self.model_dump(), GivenPrice)


class ModelConfig(Code):
    """The endpoint of a model, its prices and its options, where they differ from the provider's.

    Or the code that is called instead, see `Code`.
    """

    api_base: Annotated[Text, AfterValidator(_web_address)] | None = None
    """URL of an endpoint; null: the provider's own."""
    protocol: Literal["openai", "responses", "anthropic", "gemini", "ollama", "azure"] | None = None
    """How the `api_base` is spoken to; null: as the model's name says, else as OpenAI's chat completions."""
    api_key_env: Annotated[Text, AfterValidator(_variable)] | None = None
    """The variable of the workers' environment that holds the key."""
    http: HttpConfig | None = None
    """How an application is asked that speaks none of the protocols; instead of `api_base`."""
    model: Text | None = None
    """The model that is called, of which a bench may have several; null: that of its name."""
    prices: Price | None = None
    """What it costs; needed for `max_cost` with a model of unknown price."""
    prices_from: dict[Annotated[Text, AfterValidator(_day)], Price] = Field({})
    """What it costs from a day on, such as `2026-12-01`, by the day (UTC) on which a run is submitted."""
    transform: TransformConfig | None = None
    """How its answers are changed before they are checked, and before the transform of the bench."""
    prompts: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """The prompts that it is sent, of a model under test; empty: all."""
    params: Params = Params()
    """Options of calls to it; they go before those of the bench."""
    headers: Headers = Field({})
    """Headers of requests to it."""
    role: Literal["model", "check"] = "model"
    """Whether its code answers prompts, or says by its functions whether answers pass: see `verdict`."""

    def price_on(self, day: str) -> GivenPrice | None:
        """Returns what it costs on a day; None where the file does not say.

        >>> later = Price(prompt_per_million=2, completion_per_million=8)
        >>> config = ModelConfig(prices_from={"2026-12-01": later})
        >>> config.price_on("2026-11-30") is None, config.price_on("2027-01-01").prompt_per_million
        (True, 2.0)
        """
        since = max((each for each in self.prices_from if each <= day), default=None)
        price = self.prices if since is None else self.prices_from[since]
        return None if price is None else price.given

    @model_validator(mode="after")
    def _has_place(self) -> Self:
        """Refuses a protocol of nowhere, and two places."""
        code = next((key for key in ("python", "javascript", "plugin") if getattr(self, key)), None)
        code = code or ("http" if self.http else None)
        refused = ("api_base", "http", "api_key_env", "model") if code != "http" else ("model",)
        for key in refused if code else ():
            if getattr(self, key) is not None:
                raise _misplaced(key, f"{code} is called, and there is {key} too: keep one of them")
        if self.http and self.api_base is not None:
            raise _misplaced("http", "http has a url, and there is an api_base too: keep one of them")
        if self.role == "check" and self.named is None:
            raise _misplaced("role", "only code has a role: write python or javascript too")
        if self.protocol and self.api_base is None:
            raise _misplaced("protocol", "protocol is that of an api_base: write api_base too")
        return self


_NOTHING: Final = ModelConfig()


class ModelEntry(ModelConfig):
    """A model of the list with its configuration, which it has there instead of in `model_configs`."""

    name: Text
    """What it is called."""

    @model_validator(mode="after")
    def _is_model(self) -> Self:
        """Refuses what is no model under test."""
        if self.role == "check":
            raise _misplaced("role", "code with a role stands in model_configs: checks ask it, cases do not")
        return self


def _form_of_model(model: Any) -> str:
    """Names the form that an entry has, so that mistakes are told of one of the two only."""
    return "union-entry" if isinstance(model, dict | ModelEntry) else "union-name"


ListedModel: TypeAlias = Annotated[
    Annotated[Text, Tag("union-name")] | Annotated[ModelEntry, Tag("union-entry")],
    Discriminator(_form_of_model),
]
"""A model: its name, or name and configuration."""


class Pairwise(_Strict):
    """How `proctor rank` compares the answers of models."""

    model: Text
    """The judge."""
    criterion: Annotated[Text, Field(max_length=MAX_CRITERION_CHARS)]
    """What makes an answer the better one, in words."""


class RepeatRule(_Strict):
    """How often a case is asked, and how many of its answers must pass for the case to pass."""

    times: int = Field(ge=1, le=MOST_REPEATS)
    """Answers that are asked for, at most."""
    needed: int = Field(ge=1, le=MOST_REPEATS, alias="pass")
    """Answers that must pass."""

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        """Refuses what no answers can meet."""
        if self.needed > self.times:
            text = f"pass is {self.needed}, more than times ({self.times}): write a smaller one"
            raise _misplaced("pass", text)
        return self


def _form_of(repeat: Any) -> str:
    """Names the form that a value has, so that mistakes are told of one of the two only."""
    return "union-cases" if isinstance(repeat, dict | RepeatRule) else "union-answers"


Repeat: TypeAlias = Annotated[
    Annotated[int, Field(ge=1, le=MOST_REPEATS), Tag("union-answers")]
    | Annotated[RepeatRule, Tag("union-cases")],
    Discriminator(_form_of),
]
"""A number: each answer counts by itself; else cases count."""


class _SettingKeys(_Strict):
    """The settings of a run, for the first level of a file and for its `config` block."""

    concurrency: int = Field(DEFAULT_CONCURRENCY, ge=1, le=MOST_CONCURRENCY)
    """Calls that may be under way at a time in the whole fleet."""
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    """Sampling temperature of the models; null: 0.1."""
    judge_model: Text | None = DEFAULT_JUDGE
    """The judge of outputs that are not the expected one; null: none."""
    judge_models: Panel | None = None
    """Judges of whom more than half must find an output equivalent; instead of `judge_model`."""
    embedding_model: Text | None = None
    """The model of `similar` checks that name none."""
    max_cost: float | None = Field(None, ge=0, le=1_000_000, allow_inf_nan=False)
    """US dollars that the run may cost; null: no limit."""
    repeat: Repeat = 1
    """How often each case is put to each model, and how many answers must pass if cases are to count."""
    stream: bool = False
    """Whether answers are taken piece by piece, so that the time to the first token is known."""
    cache: bool = True
    """Whether equal questions share an answer."""
    timeout_s: float = Field(DEFAULT_TIMEOUT_S, gt=0, le=3_600, allow_inf_nan=False)
    """Hard limit of one call."""
    json_extraction: Literal["strict", "lenient"] = "strict"
    """`lenient` also finds an object amid prose, without a fence."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""


NEVER_NULL: Final = {name for name, field in _SettingKeys.model_fields.items() if field.default is not None}
"""Settings that have a value; for `judge_model` null says that there is no judge."""


class RunSettings(_SettingKeys):
    """The `config` block."""

    def under(self, above: _SettingKeys) -> "RunSettings":
        """Returns these settings with those that are given in others.

        >>> RunSettings(repeat=2, stream=True).under(RunSettings(repeat=3)).repeat
        3
        """
        given = _SettingKeys.model_fields.keys() & above.model_fields_set
        return self.model_copy(update={name: getattr(above, name) for name in given})

    @property
    def times(self) -> int:
        """How often each case is put to each model, if it says nothing itself."""
        return times_of(self.repeat)

    @property
    def judges(self) -> list[str]:
        """The judges of outputs that are not the expected one."""
        return self.judge_models or ([self.judge_model] if self.judge_model else [])


class Only(_Strict):
    """The models that a case is put to, and the prompts; empty: all."""

    models: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    prompts: Annotated[tuple[Text, ...], Field(strict=False)] = ()


class CaseEntry(Criteria):
    """One test case as it is written in a file: its input and its criteria."""

    id: Annotated[Text, Field(max_length=MAX_ID_CHARS)] | None = None
    """A name of its own, unique among the cases of the run."""
    input: Annotated[Text, Field(max_length=MAX_INPUT_CHARS)] | None = None
    """What the models are sent, word for word; null where prompts or `messages` say it."""
    messages: Conversation | None = None
    """A conversation instead of the prompts' user part."""
    system_prompt: Text | None = None
    """The system message of this case."""
    vars: JsonObject | None = None
    """Values for the templates of prompts and checks; they go before those of the bench."""
    expand: bool = False
    """Whether it stands for one case of each combination of its vars that are lists."""
    images: Annotated[tuple[Text, ...], Field(max_length=MOST_IMAGES, strict=False)] = ()
    """Files that are sent with the last message: paths inside the file's folder."""
    tags: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    """What it belongs to, for reports and `--tag`."""
    metadata: JsonObject | None = None
    """Facts about it, which are kept with its result."""
    weight: float | None = Field(None, ge=0, le=1_000_000, allow_inf_nan=False)
    """How much it counts in means; null: 1."""
    repeat: Repeat | None = None
    """How often it is put to each model, as in the settings; null: as these say."""
    only: Only | None = None
    """The models and prompts that it is put to; null: all."""
    default_checks: Literal[False] | None = None
    """`false`: without the `default_checks` of the bench."""
    outputs: dict[str, Encodable] | None = None
    """Recorded outputs by model: nothing is called then."""


COLUMN_FIELDS: Final = tuple(CaseEntry.model_fields)
"""The documented names of columns."""
MEMBERED: Final = frozenset({"vars", "metadata", "outputs"})
"""Fields whose members may be columns of their own: `vars.NAME`."""


class BenchConfig(_SettingKeys):
    """A whole file; it may have its settings on the first level, or in a block of their own."""

    name: Text
    """What the run is called."""
    description: Text | None = None
    """What it is for; lists and reports show it."""
    system_prompt: Text | None = None
    """The first message of each call; may be left out where there are `prompts`."""
    prompts: Prompts | None = None
    """Templates of what the models are sent; null: the cases' `input`."""
    vars: Annotated[JsonObject, BeforeValidator(_mapping)] = {}
    """Values for the templates of all cases."""
    params: Annotated[Params, BeforeValidator(_mapping)] = Params()
    """Options of calls to the models under test."""
    headers: Annotated[Headers, BeforeValidator(_mapping)] = {}
    """Headers of requests to the models under test."""
    judge_params: Annotated[Params, BeforeValidator(_mapping)] = Params()
    """Options of calls to judges."""
    transform: TransformConfig | None = None
    """How answers are changed before they are checked, where a case says nothing itself."""
    default_checks: Annotated[JsonList, BeforeValidator(_list)] = []
    """Checks of all cases, before their own."""
    paid_checks: Literal["always", "needed"] | None = None
    """As in cases, for all of them."""
    pairwise: Pairwise | None = None
    """How `proctor rank` compares answers; it changes no result."""
    models: Annotated[list[ListedModel], Field(min_length=1)]
    """The models to evaluate."""
    model_configs: Annotated[dict[str, ModelConfig], BeforeValidator(_mapping)] = {}
    """By model, the judge included."""
    schema_path: Text | None = None
    """The JSON schema that all outputs must keep to: a path inside the file's folder."""
    schema_: Annotated[Any, AfterValidator(_schema), WithJsonSchema(_PATH_OR_OBJECT)] = Field(
        None, alias="schema"
    )
    """Another spelling of `schema_path`, or the schema itself."""
    validators_file: Text | None = None
    """Functions that judge outputs: a path inside the file's folder."""
    test_cases_file: CaseFiles | None = None
    """More cases, which come before those of `test_cases`: paths or patterns inside the file's folder, or
    code that makes them."""
    columns: Annotated[dict[Text, TargetName], BeforeValidator(_mapping)] = {}
    """Columns of these files that are called otherwise than the fields that they are: `question: input`."""
    config: Annotated[RunSettings, BeforeValidator(_mapping)] | None = None
    """How it is run."""
    test_cases: Annotated[list[CaseEntry], BeforeValidator(_list)] = []
    """The cases."""

    @model_validator(mode="before")
    @classmethod
    def _leaves_out_nulls(cls, written: Any) -> Any:
        """Takes a key without a value, such as `repeat:`, for one that is not there."""
        if not isinstance(written, dict):
            return written
        dropped = {
            key for key in NEVER_NULL & written.keys() if written[key] is None and key != "judge_model"
        }
        return {key: value for key, value in written.items() if key not in dropped} if dropped else written

    @model_validator(mode="after")
    def _is_said_once(self) -> Self:
        """Refuses what stands in two places: one of them would be lost."""
        given = self.model_fields_set
        block = self.config.model_fields_set if "config" in given and self.config is not None else set()
        for key in RunSettings.model_fields:
            if key in given and key in block:
                raise _misplaced(key, f"{key} stands here and in config: keep the one in config")
            if key in DOCUMENTED and key in given and "config" in given:
                raise _misplaced(key, f"{key} stands beside a config block: move it into config")
        panels = (self.judge_models, self.config and self.config.judge_models)
        if "judge_model" in given | block and any(panels):
            text = "judge_model and judge_models both stand here: keep judge_models for a panel"
            raise _misplaced("judge_models", text)
        for name in (each.name for each in self.models if isinstance(each, ModelEntry)):
            if name in self.model_configs or self.model_names.count(name) > 1:
                raise _misplaced("models", f"{name} is configured twice: keep one of them")
        if self.system_prompt is None and self.prompts is None:
            raise _misplaced("system_prompt", "is missing: write system_prompt, or prompts")
        if self.schema_path and self.schema_ and self.schema_path != self.schema_:
            raise _misplaced("schema", "schema and schema_path differ: keep schema_path")
        return self

    @property
    def settings(self) -> RunSettings:
        """The settings, wherever they stand."""
        return (self.config or RunSettings()).under(self)

    @property
    def model_names(self) -> list[str]:
        """The models by their names."""
        return [each if isinstance(each, str) else each.name for each in self.models]

    @property
    def configured(self) -> dict[str, ModelConfig]:
        """The configurations of models, wherever they stand."""
        entries = {each.name: each for each in self.models if isinstance(each, ModelEntry)}
        return {**self.model_configs, **entries}

    @property
    def code_checks(self) -> frozenset[str]:
        """The names of code that says whether answers pass."""
        return frozenset(name for name, own in self.model_configs.items() if own.role == "check")

    def config_of(self, model: str) -> ModelConfig:
        """Returns the configuration of a model; that of one without is empty."""
        return self.configured.get(model, _NOTHING)

    def target(self, model: str, tier: str | None = None) -> ModelTarget:
        """Returns where a model is called, without headers.

        Args:
            model: its name.
            tier: the service tier that is asked for; `flex` takes longer, unless the file has a `timeout_s`.
        """
        own, settings = self.config_of(model), self.settings
        is_slow = tier == FLEX and "timeout_s" not in settings.model_fields_set
        timeout_s = FLEX_TIMEOUT_S if is_slow else settings.timeout_s
        http = own.http.mapping if own.http else None
        return ModelTarget(
            own.model or model,
            http.request.address if http else own.api_base or (f"plugin:{own.plugin}" if own.plugin else ""),
            own.api_key_env or "",
            timeout_s=timeout_s,
            protocol=own.protocol or "",
            http=http,
            plugin=own.plugin or "",
            config=own.config,
        )

    def prices_on(self, day: str) -> dict[str, GivenPrice]:
        """Returns the prices that the file states for a day, by the model that is called."""
        priced = ((own.model or name, own.price_on(day)) for name, own in self.configured.items())
        return {model: price for model, price in priced if price is not None}

    def judge(self, model: str) -> ModelTarget:
        """Returns where a model is called that judges, or that a check asks: with the headers of judges."""
        own = self.config_of(model)
        of_model = merge_headers(own.params.headers or {}, own.headers)
        headers = merge_headers(self.judge_params.headers or {}, of_model)
        target = self.target(model, self.judge_params.service_tier)
        return msgspec.structs.replace(target, headers=headers)

    @property
    def schema_file(self) -> str | None:
        """Path of the schema, in either spelling."""
        return self.schema_path or (self.schema_ if isinstance(self.schema_, str) else None)


def times_of(repeat: int | RepeatRule) -> int:
    """Returns how many answers a case has."""
    return repeat if isinstance(repeat, int) else repeat.times


def quorum_of(repeat: int | RepeatRule) -> Quorum | None:
    """Returns how many answers must pass; None where each counts by itself."""
    return None if isinstance(repeat, int) else Quorum(repeat.needed, repeat.times)


def _misplaced(key: str, text: str) -> PydanticCustomError:
    """An error about one key, found by looking at the whole file."""
    return PydanticCustomError("misplaced", "{text}", {"text": text, "key": key})
