"""`proctor compare A B`: what was fixed, what broke, and whether that is more than chance."""

import json
import os
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from producer.atomic_file import atomic_file
from producer.cli.completions import complete_runs_or_files
from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.errors import UsageError

if TYPE_CHECKING:
    from producer.report.comparison.contents import Contents, Side

SCORES: Final = ("score", "keywords_found", "rouge_l", "latency_ms", "cost_usd")
FORMATS: Final = frozenset({"html", "md", "json"})
LEVEL: Final = 0.05
SHOWN: Final = 20
"""Items of a list by default."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is compared, and how."""

    a: str
    b: str | None
    by: str | None
    pair: tuple[str, str] | None
    tag: str | None
    level: float
    judged: tuple[str, ...]

    @property
    def swapped(self) -> str:
        """The command that compares them the other way round."""
        if self.b is not None:
            return replace(self, a=self.b, b=self.a).command
        return replace(self, pair=self.pair and (self.pair[1], self.pair[0])).command

    @property
    def command(self) -> str:
        """The command that makes the same comparison."""
        words = ["proctor", "compare", self.a, *([self.b] if self.b else [])]
        words += ["--by", self.by] if self.by else []
        words += ["--pair", *self.pair] if self.pair else []
        words += ["--tag", self.tag] if self.tag else []
        words += ["--level", f"{self.level:g}"] if self.level != LEVEL else []
        return shlex.join([*words, *(word for name in self.judged for word in ("--metric", name))])


@declare()
@click.argument("a", shell_complete=complete_runs_or_files)
@click.argument("b", shell_complete=complete_runs_or_files, required=False)
@click.option(
    "--by",
    type=click.Choice(["prompt", "model"]),
    help="Compare two prompts or models within run A.",
)
@click.option(
    "--pair",
    nargs=2,
    metavar="A B",
    help="The two prompts or models to compare; needed if the run has more.",
)
@click.option("--tag", metavar="TAG", help="Compare only cases with this tag.")
@click.option("--fail-on-regression", is_flag=True, help="Exit 1 if B is significantly worse than A.")
@click.option(
    "--metric",
    "judged",
    multiple=True,
    type=click.Choice(SCORES),
    help="Test this score as well as the outcomes; may be repeated.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=LEVEL,
    show_default=True,
    metavar="P",
    help="Significance level (false-positive rate).",
)
@click.option(
    "--first", type=click.IntRange(1), metavar="N", help=f"Items to show per list [default: {SHOWN}]."
)
@click.option(
    "-o",
    "--output",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Report to write; its suffix (.html .md .json) is its format; may be repeated.",
)  # fmt: skip - one option, one paragraph
@pass_session
def command(
    session: Session,
    *,
    a: str,
    b: str | None,
    by: str | None,
    pair: tuple[str, str] | None,
    tag: str | None,
    fail_on_regression: bool,
    judged: tuple[str, ...],
    level: float,
    first: int | None,
    paths: tuple[Path, ...],
) -> int:
    """Compare run B with the earlier run A; each is a run's id, or its report as JSON or JSON Lines.

    Of one run alone, A is the run before it of the same file. Items are paired by query id, by case,
    model and prompt, or by thread and message. With --by, two prompts or two models of one run are
    compared instead. One broken case alone is not a regression: McNemar's test over all cases decides,
    at the significance level --level.
    """
    from producer.aggregate.comparison import compare  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.report_files import plan_files  # noqa: PLC0415 - same
    from producer.report.comparison.contents import Contents  # noqa: PLC0415 - same

    files = plan_files(paths)
    if wrong := [file for file in files if file.format not in FORMATS]:
        raise UsageError(
            f"{wrong[0].path}: a comparison is written as .html, .md or .json",
            hint="choose one of these suffixes",
        )
    choice = _Choice(a, b, by, pair or None, tag, level, tuple(dict.fromkeys(judged)))
    with ExitStack() as resources:
        choice, one, other = _sides(session, choice, resources)
        found = compare(one.kind, one.items, other.items, level=level, judged=choice.judged)
        if not found.pairs:
            raise UsageError(
                f"{one.name} and {other.name} share no item", hint="compare runs of the same file"
            )
        document = {
            "schema_version": SCHEMA_VERSION,
            "a": one.as_document(),
            "b": other.as_document(),
            **found.as_document(),
            "files": [{"format": file.format, "path": str(file.path)} for file in files],
            "exit": int(fail_on_regression and bool(found.regressions)),
        }
        contents = Contents(document, found, (one, other), choice.command, choice.swapped)
        if other_input := contents.other_input():
            session.output.warn(other_input)
        for file in files:
            with atomic_file(file.path) as out:
                _write(file.format, contents, out, file.path.parent)
        if session.options.json:
            session.output.data(json.dumps(document, ensure_ascii=False))
        else:
            from producer.cli.comparison_output import print_comparison  # noqa: PLC0415 - start-up: as above

            print_comparison(session.output, contents, first or SHOWN)
    return int(document["exit"])


def _sides(session: Session, choice: _Choice, resources: ExitStack) -> tuple[_Choice, "Side", "Side"]:
    """Reads both sides, two runs or two parts of one; runs are named by their ids from then on."""
    from producer.cli.compare_inputs import read_side, sides_within  # noqa: PLC0415 - start-up: as above

    a, b, by = choice.a, choice.b, choice.by
    if by is None and choice.pair:
        raise UsageError(
            "--pair names two prompts or models: it needs --by", hint=f"proctor compare {a} --by prompt"
        )
    if by is not None and b is not None:
        raise UsageError("--by compares within one run", hint=f"proctor compare {a} --by {by}")
    if by is None and b is None:
        a, b = _with_the_run_before(session, a)
    one = read_side(lambda: session, a, resources, tag=choice.tag)
    choice = replace(choice, a=one.name)
    if by is not None:
        one, other = sides_within(one, by, choice.pair)
        choice = replace(choice, pair=(one.part, other.part))
    else:
        other = read_side(lambda: session, str(b), resources, tag=choice.tag)
        choice = replace(choice, b=other.name)
    _check(session, one, other)
    return choice, one, other


def _with_the_run_before(session: Session, named: str) -> tuple[str, str]:
    """Names the run before a run of the same file, and the run."""
    from producer.cli.run_lookup import find_run, run_before  # noqa: PLC0415 - start-up: as above

    if Path(named).is_file():
        raise UsageError("compare needs two reports, or a run", hint=f"proctor compare BEFORE {named}")
    info = find_run(session, named)
    return run_before(session, info).run, info.run


def _check(session: Session, one: "Side", other: "Side") -> None:
    """Refuses runs of two kinds, and warns of a run that goes on."""
    if one.kind is not other.kind:
        raise UsageError(
            f"{one.name} has {one.kind} and {other.name} has {other.kind}", hint="compare runs of one kind"
        )
    for side in (one, other):
        if not side.is_final:
            session.output.warn(f"{side.name} has not ended: only what is there is compared")


def _write(form: str, contents: "Contents", out: BinaryIO, folder: Path) -> None:
    """Writes a comparison as a file has it; pages of the runs are named from the file's folder."""
    if form == "json":
        out.write(json.dumps(contents.document, ensure_ascii=False, indent=2).encode() + b"\n")
    elif form == "html":
        from producer.report.comparison.to_html import comparison_page  # noqa: PLC0415 - start-up: as above

        one, other = (
            side._replace(page=Path(os.path.relpath(side.page, folder)).as_posix() if side.page else "")
            for side in contents.sides
        )
        out.writelines(comparison_page(replace(contents, sides=(one, other))))
    else:
        from producer.report.comparison.to_markdown import comparison_markdown  # noqa: PLC0415 - start-up: as above

        out.writelines(line.encode(errors="replace") + b"\n" for line in comparison_markdown(contents))
