"""Reads outputs that were recorded before, one on each line, so that they are validated without any call."""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from producer.cases.bench_files import TextFile, json_rows
from producer.load.contracts import checked
from producer.load.problems import InputRow, Place, Problems, nearest
from producer.text import shown
from shared.contracts.case_run import Recorded
from shared.contracts.case_vocabulary import MAX_OUTPUT_CHARS
from shared.contracts.cases import JsonObject, Text
from shared.contracts.unjudged_case import REASONING_CHARS
from shared.errors import InputError

_HALVES: Final = re.compile("[\ud800-\udfff]")


class Key(NamedTuple):
    """Which answer an output is; `repeat` -1: of every repetition; `prompt` None: of every prompt."""

    case: int
    model: str
    repeat: int = -1
    prompt: str | None = None


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


def read_recorded(
    file: TextFile, ids: Sequence[str | None], prompts: Sequence[str] = (), *, repeats: Sequence[int]
) -> dict[Key, Recorded]:
    """Reads recorded outputs.

    Args:
        file: JSON Lines.
        ids: of the cases, in order.
        prompts: ids of the prompts.
        repeats: how often each of the cases is answered.

    Raises:
        InputError: a line breaks the contract, or names no case or repetition.
    """
    by_id = {name: at for at, name in enumerate(ids) if name is not None}
    found, places, problems = dict[Key, Recorded](), dict[Key, Place](), Problems()

    def read(line: InputRow) -> tuple[Key, OutputRow]:
        row = checked(OutputRow, line.value, line.place)
        if row.prompt is not None and row.prompt not in prompts:
            what = f"no prompt has the id {shown(row.prompt)}"
            raise line.place.at("prompt").error(what, nearest(row.prompt, list(prompts)))
        repeat = -1 if row.repeat is None else row.repeat
        at = _position(line.place, row.case, by_id, len(ids))
        if repeat >= repeats[at]:
            hint = f"repetitions go from 0 to {repeats[at] - 1}, since repeat is {repeats[at]}"
            raise line.place.at("repeat").error(f"there is no repetition {repeat}", hint)
        key = Key(at, row.model, repeat, row.prompt)
        if key in places:
            what = f"another output of case {shown(row.case)} and {row.model}, beside {places[key]}"
            raise line.place.error(what, 'tell repetitions apart with "repeat": 0, 1, …')
        return key, row

    for line in json_rows(file, problems):
        pair = problems.attempt(partial(read, line))
        if pair is None:
            continue
        key, row = pair
        places[key] = line.place
        found[key] = _recorded(row)
    problems.raise_found()
    if not found:
        raise InputError(
            f"{file.name}: no outputs in it", hint='write {"case": 0, "model": "…", "output": "…"}'
        )
    return found


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
        row.cached,
        row.cached_input_tokens,
        row.reasoning_tokens,
    )


def recorded_for(
    outputs: Mapping[Key, Recorded], case: int, model: str, prompt: str | None, repeat: int
) -> Recorded | None:
    """Finds the output of one item, the most exact one; None when there is none."""
    if not outputs:
        return None
    names = (prompt, None) if prompt is not None else (None,)
    keys = (Key(case, model, often, name) for name in names for often in (repeat, -1))
    return next((outputs[key] for key in keys if key in outputs), None)


def readable(output: str) -> str:
    r"""Makes an output one that can travel: halves of surrogate pairs are replaced, the overlong is cut.

    What is cut stays longer than the bound, so that the worker still calls it too large.

    >>> readable("a\ud800b")
    'a\ufffdb'
    """
    return _HALVES.sub("\ufffd", output[: MAX_OUTPUT_CHARS + 1])


def _position(place: Place, named: int | str, by_id: Mapping[str, int], cases: int) -> int:
    """Finds the case that a line names."""
    if isinstance(named, int):
        if named < cases:
            return named
        raise place.at("case").error(f"there is no case {named}", f"positions go from 0 to {cases - 1}")
    if named in by_id:
        return by_id[named]
    close = get_close_matches(named, by_id, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "write a position without quotes, or the id of a case"
    raise place.at("case").error(f"no case has the id {shown(named)}", hint)
