"""Reads outputs that were recorded before, one on each line, so that they are validated without any call."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import partial
from itertools import islice
from typing import Annotated, Final, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from producer.cases.bench_cases import BenchCases
from producer.cases.bench_config import Bench
from producer.cases.bench_files import text_lines
from producer.cases.data_rows import json_rows
from producer.load.contracts import checked
from producer.load.kept_values import KeptValues
from producer.load.problems import InputRow, Place, Problems, nearest
from producer.load.source import Source
from producer.text import shown
from shared.contracts.case_run import Recorded
from shared.contracts.case_vocabulary import MAX_OUTPUT_CHARS
from shared.contracts.cases import JsonObject, Text
from shared.contracts.unjudged_case import REASONING_CHARS
from shared.errors import InputError

_HALVES: Final = re.compile("[\ud800-\udfff]")


NEAREST_AMONG: Final = 1_000
"""Ids among which the nearest is looked for."""


class Key(NamedTuple):
    """Which answer an output is; `repeat` -1: of every repetition; `prompt` None: of every prompt."""

    case: int
    model: str
    repeat: int = -1
    prompt: str | None = None


class _Kept(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """An output on its way from a file to its item."""

    recorded: Recorded
    line: int = 0
    """Where it stands."""


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Kept).decode


class Outputs:
    """Recorded outputs, however many.

    >>> outputs = Outputs()
    >>> outputs.add(Key(0, "m"), Recorded("for all")), outputs.add(Key(0, "m", 1), Recorded("for one"))
    (None, None)
    >>> [outputs.of(0, "m", None, repeat).output for repeat in (0, 1)], outputs.of(1, "m", None, 0)
    (['for all', 'for one'], None)
    """

    def __init__(self) -> None:
        self._kept = KeptValues[_Kept](_encode, _decode)
        self.models: dict[str, None] = {}
        """Models that have an output, in the order of the file."""
        self._is_exact = False

    def add(self, key: Key, recorded: Recorded, line: int = 0) -> int | None:
        """Adds an output; returns the line of another one of the same key, if there is one."""
        before = self._kept.add(_Kept(recorded, line), key=_text(key))
        self.models[key.model] = None
        self._is_exact = self._is_exact or key.repeat >= 0 or key.prompt is not None
        return None if before is None else self._kept[before].line

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, case: int, model: str, prompt: str | None, repeat: int) -> Recorded | None:
        """Finds the output of one item, the most exact one; None when there is none."""
        keys: Iterable[Key] = (Key(case, model),)
        if self._is_exact:
            names = (prompt, None) if prompt is not None else (None,)
            keys = (Key(case, model, often, name) for name in names for often in (repeat, -1))
        found = next((kept for key in keys if (kept := self._kept.get(_text(key))) is not None), None)
        return None if found is None else found.recorded


def _text(key: Key) -> str:
    """Writes a key; names may hold every character, and their lengths keep them apart."""
    prompt = "" if key.prompt is None else f"={key.prompt}"
    return f"{key.case} {key.repeat} {len(key.model)} {key.model}{prompt}"


class OutputRow(BaseModel):
    """The contract of a line."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    case: Annotated[int, Field(ge=0)] | str
    """Position of the case, from 0, or its id."""
    model: Text
    """Any name."""
    output: str
    """The answer of the model; it may be empty."""
    prompt: Text | None = None
    """Id of the prompt; left out: all of them."""
    repeat: Annotated[int, Field(ge=0)] | None = None
    """Which repetition it answers, from 0; left out: all of them."""
    latency_seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    """How long it took."""
    first_token_seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    """How long it took to its first piece of text or reasoning."""
    cached: bool = False
    """Whether it came from the cache, with the latency of the call that it is a copy of."""
    cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What it cost."""
    prompt_tokens: int | None = Field(None, ge=0, lt=1 << 53)
    """As the provider counted them."""
    completion_tokens: int | None = Field(None, ge=0, lt=1 << 53)
    """As the provider counted them."""
    cached_input_tokens: int | None = Field(None, ge=0, lt=1 << 53)
    """Of the prompt's: those that the provider had in its cache."""
    reasoning_tokens: int | None = Field(None, ge=0, lt=1 << 53)
    """Of the answer's: those that were thought and not said."""
    reasoning: str = ""
    """What the model thought before it answered; it is kept, and never judged."""
    tool_calls: list[JsonObject] = []
    """What the model called, in OpenAI's form."""
    refusal: str = ""
    """What the provider's field for a refusal says."""
    is_json: bool = False
    """Whether the output is an object or a list, which JavaScript receives as a value."""


def read_recorded(name: str, lines: Iterable[str], cases: BenchCases, prompts: Sequence[str] = ()) -> Outputs:
    """Reads recorded outputs.

    Args:
        name: of the file.
        lines: of the file, JSON Lines.
        cases: of the bench.
        prompts: ids of the prompts.

    Raises:
        InputError: a line breaks the contract, or names no case or repetition.
    """
    found, problems = Outputs(), Problems()

    def read(line: InputRow) -> None:
        row = checked(OutputRow, line.value, line.place)
        if row.prompt is not None and row.prompt not in prompts:
            what = f"no prompt has the id {shown(row.prompt)}"
            raise line.place.at("prompt").error(what, nearest(row.prompt, list(prompts)))
        repeat = -1 if row.repeat is None else row.repeat
        at = _position(line.place, row.case, cases)
        if repeat > 0 and repeat >= (times := cases[at].times):
            hint = f"repetitions go from 0 to {times - 1}, since repeat is {times}"
            raise line.place.at("repeat").error(f"there is no repetition {repeat}", hint)
        before = found.add(Key(at, row.model, repeat, row.prompt), _recorded(row), line.place.line)
        if before is not None:
            beside = Place(name, line=before)
            what = f"another output of case {shown(row.case)} and {row.model}, beside {beside}"
            raise line.place.error(what, 'tell repetitions apart with "repeat": 0, 1, …')

    for line in json_rows(name, lines, problems):
        problems.attempt(partial(read, line))
    problems.raise_found()
    if not len(found):
        raise InputError(f"{name}: no outputs in it", hint='write {"case": 0, "model": "…", "output": "…"}')
    return found


def outputs_of(bench: Bench, file: str | None) -> Outputs | None:
    """Returns the outputs in a file, else those that stand with cases; None: models are called."""
    if file is not None:
        source, prompts = Source(file), [prompt.id for prompt in bench.prompts]
        return read_recorded(source.name, text_lines(source.blocks(), source.name), bench.cases, prompts)
    outputs = Outputs()
    for at, case in enumerate(bench.cases) if bench.has_outputs else ():
        for model, text in (case.outputs or {}).items():
            outputs.add(Key(at, model), Recorded(readable(text)))
    return outputs if len(outputs) else None


def _recorded(row: OutputRow) -> Recorded:
    return Recorded(
        readable(row.output),
        row.latency_seconds,
        row.cost_usd,
        row.prompt_tokens,
        row.completion_tokens,
        readable(row.reasoning)[:REASONING_CHARS],
        row.tool_calls,
        readable(row.refusal),
        row.first_token_seconds,
        row.cached,
        row.cached_input_tokens,
        row.reasoning_tokens,
        row.is_json,
    )


def readable(output: str) -> str:
    r"""Makes an output one that can travel: halves of surrogate pairs are replaced, the overlong is cut.

    What is cut stays longer than the bound, so that the worker still calls it too large.

    >>> readable("a\ud800b")
    'a\ufffdb'
    """
    return _HALVES.sub("\ufffd", output[: MAX_OUTPUT_CHARS + 1])


def _position(place: Place, named: int | str, cases: BenchCases) -> int:
    """Finds the case that a line names."""
    if isinstance(named, int):
        if named < len(cases):
            return named
        raise place.at("case").error(f"there is no case {named}", f"positions go from 0 to {len(cases) - 1}")
    if (known := cases.position(named)) is not None:
        return known
    close = get_close_matches(named, islice(cases.ids(), NEAREST_AMONG), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "write a position without quotes, or the id of a case"
    raise place.at("case").error(f"no case has the id {shown(named)}", hint)
