"""Converts data sets and logs of Inspect: samples into cases, scorers into checks, with recorded answers."""

import json
import re
import zipfile
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from producer.cases.bench_files import read_source
from producer.convert.data_set import DATA_BYTES, DataSet, records_of, typed
from producer.convert.inspect_checks import CHOICE, AskedSample, Scorers
from producer.convert.inspect_solvers import Solvers, letters_of
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import InputRow, Place
from producer.load.source import Source
from shared.errors import InputError

_READABLE: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADER: Final = "header.json"
_START: Final = "_journal/start.json"
"""What a log has in its place before the evaluation has ended."""
_BEGIN_BYTES: Final = 4_096
"""Of a file, to see whether it is a log."""
TEXT: Final = "text"
REASONING: Final = "reasoning"
_ATTACHED: Final = "attachment://"


class _ToolCall(msgspec.Struct):
    """A call of a tool."""

    id: str = ""
    function: str = ""
    arguments: Any = None


class _Part(msgspec.Struct):
    """A part of a message."""

    type: str = ""
    text: Any = None
    reasoning: Any = None


class _Message(msgspec.Struct):
    """A message of a sample, or of a model."""

    role: str = "user"
    content: str | list[_Part] | None = None
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str | None = None


class _Choice(msgspec.Struct):
    """An answer of a model."""

    message: _Message = msgspec.field(default_factory=_Message)


class _Usage(msgspec.Struct):
    """The tokens of a call."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_cache_read: int | None = None
    reasoning_tokens: int | None = None


class _Output(msgspec.Struct):
    """What a model returned."""

    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    time: float | None = None


class Sample(msgspec.Struct):
    """A sample of a data set, or of a log with what became of it."""

    input: str | list[_Message]
    target: str | list[str] = ""
    choices: list[str] | None = None
    id: str | int | None = None
    epoch: int = 1
    metadata: dict[str, Any] | None = None
    files: Any = None
    sandbox: Any = None
    setup: Any = None
    output: _Output | None = None
    scores: dict[str, Any] | None = None
    attachments: dict[str, str] | None = None


class _Named(msgspec.Struct):
    """A scorer or solver with its arguments."""

    name: str = ""
    solver: str = ""
    options: dict[str, Any] | None = None
    params: dict[str, Any] | None = None


class _Role(msgspec.Struct):
    """A model with a part in the evaluation."""

    model: str


class _Roles(msgspec.Struct):
    """The parts that models have; the grader may be several."""

    grader: _Role | list[_Role] | None = None


class _Config(msgspec.Struct):
    """How samples were evaluated."""

    epochs_reducer: list[str] | None = None


class _Spec(msgspec.Struct):
    """What was evaluated."""

    task: str = ""
    model: str = ""
    scorers: list[_Named] | None = None
    model_generate_config: dict[str, Any] = {}
    model_roles: _Roles | None = None
    config: _Config = msgspec.field(default_factory=_Config)

    @property
    def judge(self) -> str:
        """The model that grades where a scorer names none."""
        grader = self.model_roles and self.model_roles.grader
        graders = grader if isinstance(grader, list) else [grader] if grader else []
        return graders[0].model if graders else self.model


class _Plan(msgspec.Struct):
    """How samples were solved."""

    steps: list[_Named] = []
    config: dict[str, Any] = {}


class Log(msgspec.Struct):
    """A log."""

    eval: _Spec
    plan: _Plan = msgspec.field(default_factory=_Plan)
    samples: list[Sample] | None = None


def is_log(file: ForeignFile) -> bool:
    """Returns whether a file is a log of Inspect."""
    if file.path.suffix.lower() == ".eval":
        return True
    if file.path.suffix.lower() != ".json":
        return False
    begin = next(iter(Source(file.path).blocks()), b"")[:_BEGIN_BYTES]
    return begin.lstrip().startswith(b"{") and b'"eval"' in begin and b'"version"' in begin


def is_data_set(file: ForeignFile) -> bool:
    """Returns whether a file has samples as Inspect reads them without a mapping of fields."""
    records = records_of(file)
    return (
        bool(records)
        and "input" in records[0].value
        and bool({"target", "choices"} & records[0].value.keys())
    )


def convert_log(file: ForeignFile) -> Conversion:
    """Translates a log; its answers are recorded ones.

    Raises:
        InputError: it is broken.
    """
    log, place = _read_log(file), Place(str(file.path))
    data, samples = DataSet(file), log.samples or []
    scorers = Scorers(data, place)
    solved = Solvers(data, place, [sample.metadata or {} for sample in samples])
    solved.read([(step.solver or step.name, step.params or {}) for step in log.plan.steps])
    named = log.eval.scorers or [_Named(name) for name in (samples[0].scores if samples else None) or ()]
    ids = {(sample.id, sample.epoch) for sample in samples}
    for sample in samples:
        if sample.epoch == 1 or (sample.id, 1) not in ids:
            _add_case(sample, _place_of(sample, file), named, scorers, solved)
        if sample.output is not None and sample.output.choices:
            _record(data, sample, log.eval.model, place)
    epochs = max((sample.epoch for sample in samples), default=1)
    repeat = _repeat(epochs, log.eval.config.epochs_reducer or [], data, place) if epochs > 1 else {}
    params = solved.params({**log.eval.model_generate_config, **log.plan.config})
    name = log.eval.task or file.path.stem
    return data.conversion(
        [log.eval.model],
        name=name,
        judge=log.eval.judge,
        settings=repeat,
        params=params,
        **solved.prompts,
        **scorers.functions,
    )


def _place_of(sample: Sample, file: ForeignFile) -> Place:
    """Where a sample of a log is."""
    return Place(str(file.path), case=str(sample.id))


def convert_data_set(file: ForeignFile) -> Conversion:
    """Translates a data set.

    Raises:
        InputError: a record is no sample.
    """
    data, records = DataSet(file), records_of(file)
    scorers, solved = Scorers(data, Place(str(file.path))), Solvers(data, Place(str(file.path)), [])
    samples = [(row.place, _sample(row)) for row in records]
    for place, sample in samples:
        named = [_Named(CHOICE if sample.choices else "includes")] if sample.target else []
        _add_case(sample, place, named, scorers, solved)
    kinds = sorted({CHOICE if sample.choices else "includes" for _, sample in samples})
    data.comments.append(f"the scorer is chosen in the task's code: {' and '.join(kinds)} assumed")
    return data.conversion(**scorers.functions)


def _repeat(epochs: int, reducers: Sequence[str], data: DataSet, place: Place) -> dict[str, Any]:
    """The setting of how often each case is asked, and how many of its answers have to pass."""
    least = {"max": 1, "mode": epochs // 2 + 1}
    for name in reducers:
        if found := re.fullmatch(r"at_least_(\d+)", name):
            least[name] = int(found[1])
        if name not in {"mean", *least} or len(reducers) > 1 or (name == "mode" and epochs % 2 == 0):
            data.leave(place, f"reducer {name}", "cases pass by a number of answers: see `repeat`")
    needed = least.get(reducers[0]) if reducers else None
    return {"repeat": {"times": epochs, "pass": needed} if needed else epochs}


def _sample(row: InputRow) -> Sample:
    """Reads a record; cells of tables hold JSON, and choices separated by commas."""
    record = {key: _value(key, value) for key, value in row.value.items() if value is not None}
    return typed(InputRow(row.place, record), Sample)


def _value(key: str, value: Any) -> Any:
    """A field of a record."""
    if key in {"metadata", "files", "input", "target"} and isinstance(value, str) and value[:1] in {"{", "["}:
        value = _json_or_text(value)
    if key == "choices" and isinstance(value, str):
        parts = value.split(",") if "," in value else value.split()
        return [each.strip() for each in parts if each.strip()]
    if key in {"choices", "target"} and isinstance(value, list):
        return list(map(str, value))
    return str(value) if key == "target" else value


def _json_or_text(text: str) -> Any:
    """A text as JSON where it is that."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _read_log(file: ForeignFile) -> Log:
    """Reads a log of either form, without what is not needed of it."""
    name = str(file.path)
    try:
        if file.path.suffix.lower() != ".eval":
            text = read_source(Source(file.path), DATA_BYTES).text
            return msgspec.convert(json.loads(text), Log, strict=False)
        with zipfile.ZipFile(file.path) as archive:
            if any(each.compress_type not in _READABLE for each in archive.infolist()):
                hint = f"inspect log convert --to json --output-dir . {file.path.name}"
                raise InputError(f"{name}: compressed in a way that Python cannot read", hint=hint)
            names = archive.namelist()
            header = _HEADER if _HEADER in names else _START
            entries = sorted(each for each in names if each.startswith("samples/"))
            if sum(archive.getinfo(each).file_size for each in (header, *entries)) > DATA_BYTES:
                raise InputError(f"{name}: more than {DATA_BYTES >> 20} MiB", hint="split it")
            log = msgspec.convert(json.loads(archive.read(header)), Log, strict=False)
            read = (json.loads(archive.read(each)) for each in entries)
            log.samples = [msgspec.convert(each, Sample, strict=False) for each in read]
            return log
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InputError(
            f"{name}: not a log of Inspect: {error}", hint="write it again with Inspect"
        ) from None


def _add_case(
    sample: Sample, place: Place, named: Sequence[_Named], scorers: Scorers, solved: Solvers
) -> None:
    """Adds the case of a sample."""
    data = scorers.data
    for key in ("files", "sandbox", "setup"):
        if getattr(sample, key):
            data.leave(place, key, "models here have no sandbox: ask the agent over HTTP")
    given: dict[str, Any] = {"id": None if sample.id is None else data.unique(str(sample.id))}
    targets = [sample.target] if isinstance(sample.target, str) else sample.target
    letters = letters_of(sample.choices or ())
    asked = AskedSample(targets, letters, solved.has_several(targets), sample.metadata or {})
    if isinstance(sample.input, str):
        given["input"] = solved.listed(_text(sample.input, sample), sample.choices or (), asked)
    else:
        given["messages"] = [_message(each, sample, data, place) for each in sample.input]
        if sample.choices or solved.is_templated:
            data.leave(place, "choices or template of a conversation", "write them into its last message")
    found = (scorers.check(each.name, each.options or each.params or {}, asked) for each in named)
    checks = [check for check in found if check is not None]
    variables = {**solved.variables(sample.metadata or {}), **scorers.variables(checks, asked)}
    data.add(place, **given, vars=variables, metadata=sample.metadata, checks=checks)


def _message(message: _Message, sample: Sample, data: DataSet, place: Place) -> dict[str, Any]:
    """A message of a conversation."""
    parts = message.content if isinstance(message.content, list) else []
    if any(part.type not in {TEXT, REASONING} for part in parts):
        data.leave(place, "images, audio or video of a message", "write their files under `images`")
    calls = [_call(each) for each in message.tool_calls or ()]
    given = {"tool_calls": calls, "tool_call_id": message.tool_call_id}
    known = {key: value for key, value in given.items() if value}
    return {"role": message.role, "content": _text(message.content, sample), **known}


def _text(content: Any, sample: Sample, kind: str = TEXT) -> str:
    """The text of a content, which may be a list of parts; long ones are attached to the sample."""
    if isinstance(content, list):
        parts = (part.text if kind == TEXT else part.reasoning for part in content if part.type == kind)
        return "\n".join(_text(part, sample) for part in parts)
    text = content if isinstance(content, str) else ""
    return (sample.attachments or {}).get(text.removeprefix(_ATTACHED), text)


def _call(call: _ToolCall) -> dict[str, Any]:
    """A call of a tool in OpenAI's form."""
    function = {"name": call.function, "arguments": json.dumps(call.arguments or {}, ensure_ascii=False)}
    return {"id": call.id, "type": "function", "function": function}


def _record(data: DataSet, sample: Sample, model: str, place: Place) -> None:
    """Records the answer of a sample, with what is known of its call."""
    output = sample.output or _Output()
    message, usage = (output.choices or [_Choice()])[0].message, output.usage or _Usage()
    is_listed = isinstance(message.content, list)
    data.record(
        place,
        case=str(sample.id),
        model=model,
        output=_text(message.content, sample),
        repeat=sample.epoch - 1,
        latency_seconds=output.time,
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cached_input_tokens=usage.input_tokens_cache_read,
        reasoning_tokens=usage.reasoning_tokens,
        reasoning=_text(message.content, sample, REASONING) if is_listed else None,
        tool_calls=[_call(each) for each in message.tool_calls or ()],
    )
