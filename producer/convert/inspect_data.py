"""Converts data sets and logs of Inspect: samples into cases, scorers into checks, with recorded answers."""

import json
import re
import zipfile
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from producer.cases.bench_files import read_source
from producer.convert.data_set import DATA_BYTES, Check, DataSet, any_of, literal, records_of, typed
from producer.convert.report import Conversion, ForeignFile
from producer.load.problems import InputRow, Place
from producer.load.source import Source
from shared.contracts.case_config import RunSettings
from shared.errors import InputError

CHOOSE: Final = "Answer with one of these choices. Your last line is ANSWER: LETTER, one of {}."
CHOOSE_SEVERAL: Final = "Answer with all right choices. Your last line is ANSWER: LETTERS, one or more of {}."
"""What is added to a question with choices, as the solver `multiple_choice` does."""
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


class _Arguments(msgspec.Struct):
    """The arguments of scorers and solvers that are translated."""

    ignore_case: Any = True
    location: Any = "end"
    numeric: Any = False
    template: Any = None
    model: Any = None
    partial_credit: bool = False


class _Named(msgspec.Struct):
    """A scorer or solver with its arguments."""

    name: str = ""
    solver: str = ""
    options: _Arguments | None = None
    params: _Arguments | None = None

    @property
    def given(self) -> _Arguments:
        """Its arguments."""
        return self.options or self.params or _Arguments()


class _Spec(msgspec.Struct):
    """What was evaluated."""

    task: str = ""
    model: str = ""
    scorers: list[_Named] | None = None


class _Plan(msgspec.Struct):
    """How samples were solved."""

    steps: list[_Named] = []


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
    data = DataSet(file)
    samples = log.samples or []
    scorers = log.eval.scorers or [_Named(name) for name in (samples[0].scores if samples else None) or ()]
    for each in scorers:
        if each.name not in _SCORERS:
            data.leave(place, f"scorer {each.name}", "it is code of the task: write it as a check")
    ids = {(sample.id, sample.epoch) for sample in samples}
    for sample in samples:
        if sample.epoch == 1 or (sample.id, 1) not in ids:
            _add_case(data, sample, place, scorers)
        if sample.output is not None and sample.output.choices:
            _record(data, sample, log.eval.model, place)
    system, prompt = _solved(log.plan.steps, data, place)
    epochs = max((sample.epoch for sample in samples), default=1)
    more = {"config": RunSettings(repeat=epochs)} if epochs > 1 else {}
    name = log.eval.task or file.path.stem
    return data.conversion([log.eval.model], name=name, system_prompt=system, prompt=prompt, **more)


def convert_data_set(file: ForeignFile) -> Conversion:
    """Translates a data set.

    Raises:
        InputError: a record is no sample.
    """
    data, records = DataSet(file), records_of(file)
    samples = [(row.place, _sample(row)) for row in records]
    for place, sample in samples:
        assumed = "choice" if sample.choices else "includes"
        _add_case(data, sample, place, [_Named(assumed)] if sample.target else [])
        data.leave(place, "scorer", f"it is chosen in the task's code: `{assumed}` is assumed")
    return data.conversion()


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


def _add_case(data: DataSet, sample: Sample, place: Place, scorers: Sequence[_Named]) -> None:
    """Adds the case of a sample."""
    for key in ("files", "sandbox", "setup"):
        if getattr(sample, key):
            data.leave(place, key, "models here have no sandbox: ask the agent over HTTP")
    given: dict[str, Any] = {"id": None if sample.id is None else data.unique(str(sample.id))}
    if isinstance(sample.input, str):
        given["input"] = _text(sample.input, sample) + _listed(sample)
    else:
        given["messages"] = [_message(each, sample, data, place) for each in sample.input]
        if sample.choices:
            data.leave(place, "choices of a conversation", "add them to its last message")
    checks = [check for each in scorers if (check := _check_of(each, sample)) is not None]
    data.add(place, **given, metadata=sample.metadata, checks=checks)


def _listed(sample: Sample) -> str:
    """The choices of a question, as they stand below it."""
    if not sample.choices:
        return ""
    letters = _letters(sample)
    lines = "\n".join(f"{letter}) {text}" for letter, text in zip(letters, sample.choices, strict=True))
    asked = CHOOSE_SEVERAL if _is_of_several(sample) else CHOOSE
    return f"\n\n{lines}\n\n{asked.format(', '.join(letters))}"


def _letters(sample: Sample) -> list[str]:
    """The letters of its choices."""
    return [chr(ord("A") + at) for at in range(len(sample.choices or ()))]


def _is_of_several(sample: Sample) -> bool:
    """Whether several of its choices are right together."""
    return isinstance(sample.target, list) and len(sample.target) > 1


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


def _solved(steps: Sequence[_Named], data: DataSet, place: Place) -> tuple[str | None, str]:
    """The system message and the template of the user's, by the solvers of a log."""
    system, prompt = None, "{{ input }}"
    for step in steps:
        template = str(step.given.template or "")
        match step.solver or step.name:
            case "system_message" if template:
                system = template
            case "prompt_template" if "{prompt}" in template:
                prompt = "{{ input }}".join(map(literal, template.split("{prompt}")))
            case "generate" | "multiple_choice":
                pass
            case other:
                data.leave(place, f"solver {other}", "it is code: write what it adds into the prompt")
    return system, prompt


def _check_of(scorer: _Named, sample: Sample) -> Check | None:
    """A scorer as a check of the target of a sample."""
    make, targets = _SCORERS.get(scorer.name), sample.target
    texts = [targets] if isinstance(targets, str) else targets
    if make is None or not any(texts):
        return None
    if scorer.name == "match" and scorer.given.numeric:
        make = _number
    if scorer.name == "choice" and _is_of_several(sample):
        return {"regex": _all_letters(texts, _letters(sample)), "name": scorer.name}
    return any_of([make(text, scorer.given) for text in texts], scorer.name)


def _includes(target: str, given: _Arguments) -> Check:
    """The target is somewhere in the answer."""
    return {"contains": literal(target)} | ({} if given.ignore_case is False else {"ignore_case": True})


def _match(target: str, given: _Arguments) -> Check:
    """The target is at one end of the answer; punctuation around it does not matter."""
    flags = "" if given.ignore_case is False else "(?i)"
    text = _escaped(target.strip())
    places = {"begin": rf"\A\W*{text}", "exact": rf"\A\W*{text}\W*\Z", "any": text}
    return {"regex": flags + places.get(str(given.location), rf"{text}\W*\Z")}


def _escaped(text: str) -> str:
    """A text as a pattern that people can read."""
    return re.escape(text).replace(r"\ ", " ")


def _number(target: str, _: _Arguments) -> Check:
    """The number in the answer."""
    return {"number": target}


def _exact(target: str, _: _Arguments) -> Check:
    """The answer is the target."""
    return {"equals": literal(target), "ignore_case": True, "normalize": True}


def _answer(target: str, _: _Arguments) -> Check:
    """The answer says which, in the form that is asked for."""
    return {"regex": rf"(?i)ANSWER\s*:\s*\(?{_escaped(target)}(?!\w)"}


def _all_letters(right: Sequence[str], letters: Sequence[str]) -> str:
    """A pattern of answers that name the right letters, in any order, and no others."""
    wrong = "".join(letter for letter in letters if letter not in right)
    named = "".join(f"(?=[A-Z ,]*{_escaped(letter)})" for letter in right)
    return rf"(?i)ANSWER\s*:{named}" + (f"(?![A-Z ,]*[{wrong}])" if wrong else "")


def _graded(target: str, given: _Arguments) -> Check:
    """A judge compares the answer with the target."""
    criterion = f"The output says what this expert answer says, or meets this criterion: {target}"
    partial = {"partial": 0.5} if given.partial_credit else {}
    choices = {"correct": 1, **partial, "incorrect": 0}
    return {"rubric": literal(criterion), "choices": choices, **_judge(given)}


def _fact(target: str, given: _Arguments) -> Check:
    """A judge compares the facts."""
    return {"factuality": literal(target), **_judge(given)}


def _judge(given: _Arguments) -> Check:
    """Who grades, where the scorer names it: one model, or several of which most decide."""
    several = given.model if isinstance(given.model, list) else [given.model]
    names = [each for each in several if isinstance(each, str)]
    return {"model": names[0]} if len(names) == 1 else {"models": names} if names else {}


_SCORERS: Final = {
    "includes": _includes,
    "match": _match,
    "exact": _exact,
    "answer": _answer,
    "choice": _answer,
    "model_graded_qa": _graded,
    "model_graded_fact": _fact,
}
"""Scorers of Inspect, by name; all others are code."""
