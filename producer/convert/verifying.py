"""Makes sure that a converted bench can be run: what Proctor refuses is taken out and listed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from producer.cases.load import plan_run
from producer.convert.bench_text import bench_text
from producer.convert.report import UNWRITTEN, Conversion, Left
from producer.load.problems import Path as DocumentPath
from producer.load.problems import Place, PlacedError
from producer.load.source import Source
from producer.options import CaseChoice
from shared.contracts.case_config import BenchConfig, CaseEntry
from shared.contracts.prompts import Prompt
from shared.errors import UsageError

ROUNDS: Final = 5
"""How often what is refused is taken out."""
NAME_CHARS: Final = 1_000
"""The longest path that is looked for."""
_PATHS: Final = frozenset({"file", "python", "javascript", "images", "schema", "test_cases_file"})
"""Keys of benches that name files."""
_CASES: Final = "test_cases"
_CHECKS: Final = "checks"
_DEFAULTS: Final = "default_checks"
_PROMPTS: Final = "prompts"
_TRANSFORM: Final = "transform"
_LISTS: Final = frozenset({_CASES, _DEFAULTS, _PROMPTS})
_WORDS: Final[Mapping[str | int, str]] = {_CASES: "case", _PROMPTS: "prompt", _TRANSFORM: "transform"}
M = TypeVar("M", bound=BaseModel)


def usable(found: Conversion, target: Path) -> Conversion:
    """Returns a conversion without what Proctor refuses, which is listed.

    Code beside the bench is not run. A bench whose cases are all made by code is returned unchanged, as one
    without prompts.

    Args:
        found: a conversion, whose files are written.
        target: where the bench will stand.
    """
    if found.bench.prompts == [UNWRITTEN] or (found.bench.test_cases_file and not found.bench.test_cases):
        return found
    for _ in range(ROUNDS):
        problems = _problems(found, target)
        if not problems:
            break
        refused = {path: what for place, what in problems if (path := _part(place.path))}
        if not refused or _empties(found, refused):
            refused = _refused_prompts(found, target)
        if not refused or _empties(found, refused):
            left = [Left(found.places.get((), Place(str(target))), "the bench", what) for _, what in problems]
            return found._replace(left=(*found.left, *left))
        found = _without(found, refused)
    return found


def rebased(found: Conversion, source: Path, target: Path) -> Conversion:
    """Returns a conversion whose paths begin at the folder of the bench.

    Args:
        found: a conversion, whose paths begin at the folder of the foreign file.
        source: the foreign file.
        target: where the bench will stand.

    Raises:
        UsageError: it names a file that a bench there cannot read.
    """
    folder, base = source.resolve().parent, target.resolve().parent
    if folder == base:
        return found

    def moved(value: Any, key: str = "") -> Any:
        """A value of the bench with the paths in it."""
        if isinstance(value, dict):
            return {name: moved(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [moved(each, key) for each in value]
        path = str(value).partition(":")[0] if key in _PATHS else ""
        if not 0 < len(path) < NAME_CHARS or not (folder / path).is_file():
            return value
        if not folder.is_relative_to(base):
            hint = f"write the bench into {source.parent}, or above it"
            raise UsageError(f"a bench in {target.parent} cannot name {path}, which is elsewhere", hint=hint)
        return f"{folder.relative_to(base).as_posix()}/{value}"

    document = found.bench.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return found._replace(bench=BenchConfig.model_validate(moved(document)))


def _problems(found: Conversion, target: Path) -> list[tuple[Place, str]]:
    """What is wrong with a bench as it is written, with the places; nothing of its code is run."""
    text = bench_text(_idle(found.bench))
    try:
        plan_run(Source(target, stdin=BytesIO(text.encode())), CaseChoice(allow_code=True))
    except UsageError as error:
        return [_placed(each) for each in error.problems or [error]]
    return []


def _idle(bench: BenchConfig) -> BenchConfig:
    """A bench without the code that would be run to read it: prompts and cases that it makes."""
    prompts = [
        Prompt(id=each.id, user=each.id or "made by code") if each.named else each
        for each in bench.prompts or ()
    ]
    idle = bench.model_copy(update={_PROMPTS: prompts} if bench.prompts else {})
    return _unset(idle, {"test_cases_file"})


def _placed(error: UsageError) -> tuple[Place, str]:
    """The place of a problem, and what is wrong."""
    if isinstance(error, PlacedError):
        return error.problem.place, error.problem.what
    return Place(""), error.message


def _part(path: DocumentPath) -> DocumentPath:
    """What a place belongs to that can be taken out; empty where there is nothing of the kind."""
    if path[:1] == (_CASES,) and path[2:3] == (_CHECKS,) and len(path) > 3:  # noqa: PLR2004 - a check of a case
        return path[:4]
    if path[:1] == (_TRANSFORM,):
        return path[:1]
    return path[:2] if len(path) > 1 and path[0] in _LISTS else ()


def _empties(found: Conversion, refused: Mapping[DocumentPath, str]) -> bool:
    """Whether no case or no prompt would be left."""
    prompts = found.bench.prompts or ()
    is_without = 0 < len(prompts) == sum(path[0] == _PROMPTS for path in refused)
    return is_without or len(_dropped(refused)) == len(found.bench.test_cases)


def _refused_prompts(found: Conversion, target: Path) -> dict[DocumentPath, str]:
    """What is wrong with prompts that cannot be sent with these cases, even without the other prompts."""
    prompts, refused = found.bench.prompts or (), dict[DocumentPath, str]()
    for at, prompt in enumerate(prompts if len(prompts) > 1 else ()):
        alone = found._replace(bench=found.bench.model_copy(update={_PROMPTS: [prompt]}))
        if problems := _problems(alone, target):
            refused[_PROMPTS, at] = problems[0][1]
    return refused


def _dropped(refused: Mapping[DocumentPath, str]) -> list[int]:
    """Positions of cases that are refused as a whole."""
    return sorted(int(path[1]) for path in refused if path[0] == _CASES and path[2:] == ())


def _without(found: Conversion, refused: Mapping[DocumentPath, str]) -> Conversion:
    """Takes out what is refused."""
    dropped = _dropped(refused)
    bench = found.bench
    cases = [_checked(case, at, refused) for at, case in enumerate(bench.test_cases) if at not in dropped]
    update: dict[str, object] = {_CASES: cases}
    for key in (_DEFAULTS, _PROMPTS):
        written: Sequence[object] = getattr(bench, key) or ()
        kept = [each for at, each in enumerate(written) if (key, at) not in refused]
        if len(kept) < len(written):
            update[key] = kept
    left = [
        Left(
            _source(found, path),
            "check" if _CHECKS in path else _WORDS.get(path[0], "check"),
            what,
        )
        for path, what in refused.items()
    ]
    return found._replace(
        bench=_unset(bench.model_copy(update=update), {_TRANSFORM} if (_TRANSFORM,) in refused else set()),
        left=(*(replace(each, at=_moved(each.at, refused)) for each in found.left), *left),
        comments={_moved(path, refused): each for path, each in found.comments.items()},
        places={_moved(path, refused): each for path, each in found.places.items()},
    )


def _checked(case: CaseEntry, at: int, refused: Mapping[DocumentPath, str]) -> CaseEntry:
    """A case without checks that are refused."""
    checks: Sequence[object] = case.checks or ()
    kept = [each for number, each in enumerate(checks) if (_CASES, at, _CHECKS, number) not in refused]
    if len(kept) == len(checks):
        return case
    if kept:
        return case.model_copy(update={_CHECKS: kept})
    return _unset(case, {_CHECKS, "at_least"})


def _unset(model: M, names: set[str]) -> M:
    """A model without some of its fields, not verified again."""
    given = {name: getattr(model, name) for name in model.model_fields_set - names}
    return model.model_construct(set(given), **given)


def _source(found: Conversion, path: DocumentPath) -> Place:
    """Where a part of the bench stands in the foreign file, as near as it is known."""
    known = (found.places.get(path[:depth]) for depth in range(len(path), -1, -1))
    return next(filter(None, known), Place(""))


def _moved(path: DocumentPath, refused: Mapping[DocumentPath, str]) -> DocumentPath:
    """A place after members of its list were taken out; that of one of them is the list."""
    if len(path) < 2 or not isinstance(at := path[1], int):  # noqa: PLR2004 - no member of a list
        return path
    if path[:2] in refused:
        return path[:1]
    before = sum(other[0] == path[0] and len(other) == 2 and int(other[1]) < at for other in refused)  # noqa: PLR2004 - a whole member
    return (path[0], at - before, *path[2:])
