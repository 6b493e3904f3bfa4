"""The settings of a cases run, and the stored form of its items: both sides read these and nothing else.

The producer writes the settings into the run's snapshot at submit, and workers read them, whatever their
environment says. No key is part of it: only the names of the workers' variables that hold one. The validators
travel as source text with its hash, the schema as JSON: workers may have none of the files.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Self

import msgspec

from shared.contracts.case_vocabulary import DEFAULT_JUDGE, Label
from shared.contracts.checks import Check, Transform
from shared.names import Outcome
from shared.upstream.model_target import DEFAULT_TIMEOUT_S, ModelTarget
from shared.upstream.prices import GivenPrice

SNAPSHOT_KEY: Final = "cases"
"""Key of these settings in a run's snapshot."""
GIT_KEY: Final = "git"
"""Key in a run's snapshot of the commit of the configuration, as `producer.cases.load.git_info` gives it."""
PLACES_FILE: Final = "places"
"""Name of the stored file; those of images are hashes."""
DEFAULT_CONCURRENCY: Final = 5
"""Calls that may be under way at a time where the configuration says nothing."""
DEFAULT_TEMPERATURE: Final = 0.1
"""Sampling temperature of models where the configuration says nothing."""
FREEFORM: Final = "freeform"
"""All cases have only an input: outputs are shown, nothing is checked."""
STANDARD: Final = "standard"
"""At least one case has a criterion."""

Mode = Literal["freeform", "standard"]


class Validators(msgspec.Struct, frozen=True, gc=False):
    """A validators file as it was read at submit."""

    source: str
    """Its text."""
    sha256: str
    """SHA-256 of the text in UTF-8, as hexadecimal digits."""


class Template(msgspec.Struct, frozen=True, gc=False):
    """The templates of a prompt as they were at submit, for people and comparisons; items are rendered."""

    system: str | None = None
    """Template of the system message; None: the bench's is sent."""
    messages: Sequence[Mapping[str, Any]] | None = None
    """Templates of the messages after it; None: a case's input is sent."""

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


class Quorum(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How many of the answers to a case must pass for the case to pass."""

    needed: int
    """Answers that must pass."""
    times: int
    """Answers that are asked for at most."""

    def left(self, passed: int, failed: int) -> int:
        """Returns after how many further answers, at the least, the verdict can be certain; 0: it is.

        Answers that ended in an error are neither passed nor failed: a retry may still have them pass.

        >>> [Quorum(8, 10).left(*answers) for answers in ((0, 0), (7, 0), (8, 0), (7, 2), (0, 3))]
        [3, 1, 0, 1, 0]
        """
        return max(0, min(self.needed - passed, self.times - self.needed + 1 - failed))

    def verdict(self, passed: int, failed: int) -> bool | None:
        """Returns whether a case passes by its answers; None while that is open."""
        return None if self.left(passed, failed) else passed >= self.needed

    @property
    def written(self) -> dict[str, int]:
        """As benches and results have it."""
        return {"times": self.times, "pass": self.needed}

    def outcome(self, answers: Mapping[Outcome, int]) -> Outcome:
        """Returns how a case ended by its answers; where that is open, an error among them makes it one.

        >>> Quorum(2, 3).outcome({Outcome.PASSED: 1, Outcome.ERROR: 1, Outcome.FAILED: 1}).value
        'error'
        """
        match self.verdict(answers.get(Outcome.PASSED, 0), answers.get(Outcome.FAILED, 0)):
            case True:
                return Outcome.PASSED
            case False:
                return Outcome.FAILED
            case None:
                return Outcome.ERROR if answers.get(Outcome.ERROR) else Outcome.SKIPPED

    def reason(self, passed: int, failed: int) -> str:
        """Says why further answers do not matter.

        >>> Quorum(8, 10).reason(8, 1), Quorum(8, 10).reason(1, 3)
        ('verdict certain: 8 of 9 passed, 8 needed', 'verdict certain: 3 of 4 failed, 8 of 10 must pass')
        """
        answers = passed + failed
        if passed >= self.needed:
            return f"verdict certain: {passed} of {answers} passed, {self.needed} needed"
        return f"verdict certain: {failed} of {answers} failed, {self.needed} of {self.times} must pass"


class CaseRun(msgspec.Struct, frozen=True):
    """The settings of a cases run: stored with it, and read by workers, as they are here."""

    name: str
    """Name of the bench."""
    system_prompt: str
    """The first message of each call."""
    models: Mapping[str, ModelTarget] = {}
    """The models of the run in their order; also those that only have recorded outputs. Headers of their
    requests are in `calls`, because prompts add to them."""
    judges: Mapping[str, ModelTarget] = {}
    """The judges of outputs that are not the expected one: of several, more than half decide."""
    check_models: Mapping[str, ModelTarget] = {}
    """The models that checks name."""
    schema: Any = None
    """The JSON schema that all outputs must keep to; None for none."""
    validators: Validators | None = None
    """The user's own checks."""
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
    """How often each case is put to each model, if it says nothing itself."""
    quorum: Quorum | None = None
    """How many of these answers must pass for a case to; None: each answer counts by itself."""
    has_quorums: bool = False
    """Whether at least one case has a quorum, which may be its own."""
    all_repeats: bool = False
    """Whether answers are asked for that cannot change the verdict on their case any more."""
    mode: Mode = STANDARD
    """`freeform` when no case has a criterion."""
    json_extraction: Literal["strict", "lenient"] = "strict"
    """`lenient` also finds an object amid prose, without a fence."""
    prompts: Sequence[str] = []
    """Ids of the prompts, in their order; empty: cases are sent as they are."""
    templates: Mapping[str, Template] = {}
    """The prompts by their ids."""
    calls: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}
    """`params` and `headers` of calls by model and prompt id (`""`: without prompts), merged; a `temperature`
    among them goes before the run's, and null means that none is sent."""
    judge_params: Mapping[str, Any] = {}
    """Options of calls to judges."""
    transforms: Mapping[str, Transform] = {}
    """How the answers of a model are changed before those of cases are, by its name."""
    written_at: Mapping[str, str] = {}
    """Where the `api_base` of a model is written, for people: file and line, or the option."""
    shared_vars: str = ""
    """Name of the run's file with the variables of the bench; empty: each item has them."""
    pairwise: Mapping[str, str] = {}
    """`model` and `criterion` by which `proctor rank` compares answers; empty: those of its options."""
    recorded: bool = False
    """Whether outputs were recorded before: no model under test is called, whatever is missing."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    cases: int = 0
    """How many cases there are; a run has one item for each case, model and repetition."""
    prices: Mapping[str, GivenPrice] = {}
    """By model, where the usual ones are not known."""
    plugins: Sequence[str] = []
    """What workers need to have, plug-ins and others, as `shared.plugins` names it."""

    @property
    def judge_model(self) -> str | None:
        """The only judge; None without one, and for a panel.

        >>> CaseRun("bench", "Answer.", judges={"a": ModelTarget("a")}).judge_model
        'a'
        """
        return next(iter(self.judges)) if len(self.judges) == 1 else None

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self:
        """Reads it back; keys of a later version are ignored.

        >>> CaseRun.from_snapshot({"cases": {"name": "bench", "system_prompt": "", "judges": {}}}).name
        'bench'
        """
        stored = snapshot[SNAPSHOT_KEY]
        return msgspec.convert(stored if "judges" in stored else _with_targets(stored), cls)


def _with_targets(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Reads settings of a layout below `TARGETS_LAYOUT`, where endpoints and headers were apart.

    >>> sorted(_with_targets({"judge_model": "a", "models": {"m": {"api_base": "http://h"}}})["judges"])
    ['a']
    """
    alone = stored.get("judge_model", DEFAULT_JUDGE)
    judges = stored.get("panel") or ({alone: stored.get("judge") or {}} if alone else {})
    headers, timeout_s = stored.get("model_headers", {}), stored.get("timeout_s", DEFAULT_TIMEOUT_S)

    def targets(places: Mapping[str, Any], headers: Mapping[str, Any]) -> dict[str, Any]:
        return {
            model: {**place, "model": model, "headers": headers.get(model, {}), "timeout_s": timeout_s}
            for model, place in places.items()
        }

    return {
        **stored,
        "models": targets(stored.get("models", {}), {}),
        "judges": targets(judges, headers),
        "check_models": targets(stored.get("check_models", {}), headers),
    }


def read_shared_vars(run: CaseRun, read: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Reads the variables that the items of a run share; empty if there are none.

    Args:
        run: the settings.
        read: reads a file of the run by its name.
    """
    stored = read(run.shared_vars) if run.shared_vars else None
    return {} if stored is None else _decode(stored)


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
    first_token_seconds: float | None = None
    """Time from sending to the first piece, of a streamed answer to the first call."""
    cached: bool = False
    """Whether it came from the cache: its latency is that of the first call, and not counted again."""
    cached_input_tokens: int | None = None
    """Of those of the question: what the provider had in its cache."""
    reasoning_tokens: int | None = None
    """Of those of the answer: what was thought and not said."""
    is_json: bool = False
    """Whether it was an object or a list, as JSON."""


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
    quorum: Quorum | None = None
    """How many of the answers to the case must pass; None: each counts by itself."""
    criteria: dict[str, Any] = {}
    """What a good answer looks like: the fields of `shared.contracts.cases.Criteria` that are given."""
    input_hash: str = ""
    """Of what decides its answer; see `shared.contracts.case_hashes`."""
    expectation_hash: str = ""
    """Of what decides its verdict."""
    rivals: list["CasePayload"] = []
    """The same case put to other models and by other prompts, with what is sent and what was recorded, where
    a check compares their answers."""

    @property
    def expected(self) -> dict[str, Any] | None:
        """The object that the output must be."""
        return self.criteria.get("expected")

    @property
    def reference(self) -> str | None:
        """A good answer in words."""
        return self.criteria.get("reference")

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks of the output, rendered."""
        return msgspec.convert(self.criteria.get("checks", ()), tuple[Check, ...])

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
    def as_rival(self) -> "CasePayload":
        """What another item needs to ask for the same answer.

        >>> rival = CasePayload(2, "m", "Hi", id="fr", tags=["a"], prompt_id="p").as_rival
        >>> encode_case(rival)
        b'{"case":2,"model":"m","input":"Hi","prompt_id":"p"}'
        """
        return CasePayload(
            self.case,
            self.model,
            self.input,
            recorded=self.recorded,
            prompt_id=self.prompt_id,
            system=self.system,
            messages=self.messages,
        )

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
