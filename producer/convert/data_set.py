"""A foreign data set: its records, read with their places, and the cases that are made of them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from producer.cases.bench_files import read_source
from producer.cases.data_rows import json_rows
from producer.cases.recorded import OutputRow
from producer.convert.promptfoo.checks import DEFAULT_GRADER, is_graded_by_default
from producer.convert.promptfoo.csv_rows import rows_of
from producer.convert.report import CaseCount, Conversion, ForeignFile, Left
from producer.load.contracts import checked
from producer.load.problems import InputRow, Place, Problems
from producer.load.problems import Path as DocumentPath
from producer.load.source import Source
from producer.load.strict_json import parse_json, why_broken
from shared.contracts.case_config import BenchConfig, CaseEntry, RunSettings
from shared.contracts.prompts import Prompt
from shared.errors import InputError
from shared.templates.template_texts import is_template

DATA_BYTES: Final = 100 << 20
"""The largest data set or log that is read."""
INLINE_CASES: Final = 50
"""Cases that are written into the bench; of more, they are a file beside it."""
ECHO: Final = "echo"
"""The model of a bench whose data name none."""
_TABLES: Final = frozenset({".csv", ".tsv"})
_LISTS: Final = ("goldens", "testCases", "test_cases")
"""Keys of an object that has a data set in one of them."""
_LINED: Final = frozenset({".jsonl", ".ndjson"})

_FORMAT: Final = re.compile(r"(\{\{|\}\}|\{[^{}]*\})")
_BRACES: Final = {"{{": "{", "}}": "}"}

Check = dict[str, Any]
T = TypeVar("T")


@lru_cache(1)
def records_of(file: ForeignFile) -> Sequence[InputRow]:
    """Reads the objects of a data set, once for all formats that look at them; empty where a file is none.

    Raises:
        InputError: it is broken.
    """
    suffix = file.path.suffix.lower()
    if suffix not in {*_TABLES, *_LINED, ".json"}:
        return []
    name, text = read_source(Source(file.path), DATA_BYTES)
    place, problems = Place(str(file.path)), Problems()
    if suffix in _TABLES:
        return [InputRow(at, _without_empty(row)) for at, row in rows_of(text, place)]
    if suffix in _LINED:
        rows = list(json_rows(name, text.splitlines(), problems))
        problems.raise_found()
        return rows
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        broken = Place(str(file.path), line=getattr(error, "lineno", 0))
        raise broken.error(why_broken(error)) from None
    within = next((key for key in _LISTS if isinstance(value, dict) and value.get(key)), None)
    listed = value if within is None else value[within]
    if not isinstance(listed, list):
        return []
    whole = Place(str(file.path), text) if len(text) < 1 << 20 else place  # to find lines takes a second
    whole = whole if within is None else whole.at(within)
    return [InputRow(whole.at(at), each) for at, each in enumerate(listed) if isinstance(each, dict)]


def _without_empty(row: Mapping[str, str]) -> dict[str, str]:
    """A row of a table without its empty cells."""
    return {name: text for name, text in row.items() if text}


def typed(row: InputRow, wanted: type[T]) -> T:
    """Reads a record as what it should be; keys that are not known are passed over.

    Raises:
        InputError: it is something else.
    """
    try:
        return msgspec.convert(row.value, wanted, strict=False)
    except msgspec.MsgspecError as error:
        raise row.place.error(str(error)) from None


def literal(text: str) -> str:
    """A text as the argument of a check, where a brace would begin a template.

    >>> literal("Paris"), literal("{{x}}")
    ('Paris', "{{ '{' }}{{ '{' }}x}}")
    """
    return text.replace("{", "{{ '{' }}") if is_template(text) or text.endswith("{") else text


def filled(
    template: str, field_of: Callable[[str], str | None], escaped: Callable[[str], str] = literal
) -> str:
    """Fills in a template of Python's `str.format`.

    Args:
        template: the text with its fields.
        field_of: what stands in the place of a field; None: it stays as it is.
        escaped: writes what is between fields.

    >>> filled("{a} of {{b}} {c}", {"a": "{{ a }}"}.get)
    '{{ a }} of {b} {c}'
    """
    parts, plain = [""], ""
    for part in _FORMAT.split(template):
        is_field = part[:1] == "{" and part not in _BRACES
        found = field_of(part[1:-1]) if is_field else None
        if found is None:
            plain += _BRACES.get(part, part)
        else:
            parts += [escaped(plain), found]
            plain = ""
    return "".join([*parts, escaped(plain)])


def any_of(checks: Sequence[Check], name: str) -> Check:
    """One check that passes if any of some does, with a name for reports."""
    return {**checks[0], "name": name} if len(checks) == 1 else {"any": list(checks), "name": name}


def asked_to_choose(choices: Iterable[str]) -> str:
    """The end of a prompt for judges that choose."""
    listed = ", ".join(json.dumps(each, ensure_ascii=False) for each in choices)
    return f'Answer with one JSON object: {{"reason": "…", "choice": one of {listed}}}.'


@dataclass(slots=True)
class DataSet:
    """The cases of a data set while they are translated."""

    file: ForeignFile
    cases: list[CaseEntry] = field(default_factory=list)
    outputs: list[OutputRow] = field(default_factory=list)
    """Recorded answers."""
    comments: list[str] = field(default_factory=list)
    """For the beginning of the bench."""
    files: dict[str, str] = field(default_factory=dict)
    """Other files that the bench names."""
    _places: list[Place] = field(default_factory=list)
    """Where the cases stand."""
    _count: CaseCount = field(default_factory=CaseCount)
    _ids: set[str] = field(default_factory=set)
    _left: dict[tuple[str, str], list[Place]] = field(default_factory=dict)

    def unique(self, name: str) -> str:
        """A name as an id that no case has: a second one has its position."""
        found = name if name not in self._ids else f"{name} ({len(self._ids) + 1})"
        self._ids.add(found)
        return found

    def add(self, place: Place, **given: Any) -> None:
        """Adds a case; empty values are left out.

        Raises:
            InputError: it is none, or one too many.
        """
        self._count.add(1, place)
        self._places.append(place)
        self.cases.append(checked(CaseEntry, {key: each for key, each in given.items() if each}, place))

    def record(self, place: Place, **given: Any) -> None:
        """Adds a recorded answer; what is not known is left out.

        Raises:
            InputError: it is none.
        """
        known = {key: each for key, each in given.items() if each not in (None, [])}
        self.outputs.append(checked(OutputRow, known, place))

    def leave(self, place: Place, what: str, reason: str) -> None:
        """Lists something that benches do not have; of many places alike, the first with their number."""
        places = self._left.setdefault((what, reason), [])
        if place not in places[-1:]:
            places.append(place)

    def conversion(
        self,
        models: Sequence[str] = (),
        *,
        name: str = "",
        judge: str = DEFAULT_GRADER,
        settings: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Conversion:
        """Makes the bench.

        Args:
            models: those that are known; empty: `echo`, to be replaced.
            name: of the bench; empty: that of the file.
            judge: the model that grades where checks name none.
            settings: those of the bench.
            more: other keys of the bench.

        Raises:
            InputError: there are no cases.
        """
        stem = self.file.path.stem
        if not self.cases:
            raise InputError(f"{self.file.path}: no cases in it", hint="name a file with samples")
        given: dict[str, Any] = {"name": name or stem, "models": list(models) or [ECHO], **more}
        is_graded = any(is_graded_by_default(case.checks) for case in self.cases)
        own = {**(settings or {}), **({"judge_model": judge} if is_graded else {})}
        given |= {"config": RunSettings(**own)} if own else {}
        given.setdefault("prompts", [Prompt(user="{{ input }}")])
        if len(self.cases) > INLINE_CASES:
            given["test_cases_file"] = [f"{stem}.cases.jsonl"]
            self.files[f"{stem}.cases.jsonl"] = _lines(self.cases)
        else:
            given["test_cases"] = self.cases
        if self.outputs:
            self.files[f"{stem}.outputs.jsonl"] = _lines(self.outputs)
            self.comments.append(f"the recorded answers: add --outputs {stem}.outputs.jsonl to proctor run")
        comments: dict[DocumentPath, Sequence[str]] = {(): self.comments}
        if not models:
            comments["models",] = ["name your model here, or give it with -m"]
        if is_graded and judge == DEFAULT_GRADER:
            comments["config", "judge_model"] = ["name your judge here"]
        left = [
            Left(places[0], f"{what} ({len(places)} times)" if len(places) > 1 else what, reason)
            for (what, reason), places in self._left.items()
        ]
        places: dict[DocumentPath, Place] = {(): Place(str(self.file.path))}
        if "test_cases" in given:
            places |= {("test_cases", at): place for at, place in enumerate(self._places)}
        return Conversion(BenchConfig(**given), left, comments, self.files, places)


def _lines(rows: Sequence[CaseEntry | OutputRow]) -> str:
    """Writes rows as JSON Lines."""
    plain = (each.model_dump(mode="json", by_alias=True, exclude_unset=True) for each in rows)
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in plain)
