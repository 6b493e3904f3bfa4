"""`proctor compare A B`: what was fixed, what broke, and whether that is more than chance."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from producer.atomic_file import atomic_file
from producer.cli.error_exit import SCHEMA_VERSION
from producer.cli.options.global_options import command as declare
from producer.cli.session import Session, pass_session
from shared.errors import UsageError

if TYPE_CHECKING:
    from producer.cli.compare_inputs import Side

SCORES: Final = ("score", "keywords_found", "rouge_l", "latency_ms", "cost_usd")
SHOWN: Final = 20
"""Items of a list by default."""


@declare()
@click.argument("a")
@click.argument("b", required=False)
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
    default=0.05,
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
    help="File to write: .md or .json; may be repeated.",
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

    Items are paired by query id, by case, model and prompt, or by thread and message. With --by, two
    prompts or two models of one run are compared instead. One broken case is no
    regression: McNemar's test over the pairs decides, at the level of --level.
    """
    from producer.aggregate.comparison import compare  # noqa: PLC0415 - start-up: `--help` must not load redis
    from producer.cli.report_files import plan_files  # noqa: PLC0415 - same

    files = plan_files(paths, None)
    if wrong := [file for file in files if file.format not in {"md", "json"}]:
        raise UsageError(f"{wrong[0].path}: a comparison is written as .md or .json")
    one, other = _sides(session, (a, b), by, pair or None, tag)
    names = tuple(dict.fromkeys(judged))
    found = compare(one.kind, one.items, other.items, level=level, judged=names)
    if not found.pairs:
        raise UsageError(f"{one.name} and {other.name} share no item", hint="compare runs of the same file")
    document = {
        "schema_version": SCHEMA_VERSION,
        "a": one.as_document(),
        "b": other.as_document(),
        **found.as_document(),
        "files": [{"format": file.format, "path": str(file.path)} for file in files],
        "exit": int(fail_on_regression and bool(found.regressions)),
    }
    for file in files:
        with atomic_file(file.path) as out:
            out.write(_written(file.format, document).encode())
    if session.options.json:
        session.output.data(json.dumps(document, ensure_ascii=False))
    else:
        _show(session, document, first or SHOWN)
    return int(document["exit"])


def _sides(
    session: Session,
    names: tuple[str, str | None],
    by: str | None,
    pair: tuple[str, str] | None,
    tag: str | None,
) -> tuple["Side", "Side"]:
    """Reads both sides: two runs, or two parts of one."""
    from producer.cli.compare_inputs import read_side, sides_within  # noqa: PLC0415 - start-up: as above

    a, b = names
    if by is None and (b is None or pair):
        raise UsageError("compare needs two runs, or one and --by", hint="proctor compare RUN --by prompt")
    if by is not None and b is not None:
        raise UsageError("--by compares within one run", hint=f"proctor compare {a} --by {by}")
    one = read_side(lambda: session, a, tag=tag)
    if by is not None:
        one, other = sides_within(one, by, pair)
    else:
        other = read_side(lambda: session, str(b), tag=tag)
    _check(session, one, other)
    return one, other


def _check(session: Session, one: "Side", other: "Side") -> None:
    """Refuses runs of two kinds, and warns of a run that goes on."""
    if one.kind is not other.kind:
        raise UsageError(
            f"{one.name} has {one.kind} and {other.name} has {other.kind}", hint="compare runs of one kind"
        )
    for side in (one, other):
        if not side.is_final:
            session.output.warn(f"{side.name} has not ended: only what is there is compared")


def _written(form: str, document: dict[str, Any]) -> str:
    """Writes a comparison as a file has it."""
    from producer.report.comparison_text import comparison_markdown  # noqa: PLC0415 - start-up: as above

    if form == "md":
        return comparison_markdown(document)
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _show(session: Session, document: dict[str, Any], first: int) -> None:
    """Prints a comparison: the verdict, rates, scores, and what changed."""
    from producer.report import comparison_text as words  # noqa: PLC0415 - start-up: as above
    from producer.report.cells import plain  # noqa: PLC0415 - same

    output = session.output
    tone: Any = {"worse": "red", "better": "green"}.get(document["verdict"], "bold")
    rates = document["pass_rate"]
    names = [f"{document[side]['name']}  {document[side]['source']}".rstrip() for side in "ab"]
    lines = [f"{side.upper()}  {plain(name)}" for side, name in zip("ab", names, strict=True)]
    lines += [output.paint(output.folded(words.verdict(document)), tone), ""]
    good = "decided" if document["kind"] == "turns" else "passed"
    lines += [f"{good}  A {words.rate_cells(rates['a'])}   B {words.rate_cells(rates['b'])}"]
    if models := document["models"]:
        lines.append(f"models  A {plain(models['a'])}   B {plain(models['b'])}, case by case")
    if prompts := document.get("prompts"):
        lines.append(f"prompts  A {plain(prompts['a'])}   B {plain(prompts['b'])}, case by case")
    changes = words.transitions(document)
    output.data("\n".join([*lines, words.counted(document), *([changes] if changes else []), ""]))
    level = f"{100 * (1 - document['test']['level_each']):g} % INTERVAL"
    headings = [level if name == "interval" else name.upper() for name in words.COLUMNS]
    output.table(headings, words.score_rows(document), right=("A", "B", "CHANGE", "N"))
    for name in words.LISTS:
        if document[name]:
            head = output.paint(f"{name} ({len(document[name]):,})", "bold")
            output.data("\n".join(["", head, *words.change_lines(document[name], first)]))
    for file in document["files"]:
        output.note(f"{file['format']} written to {plain(file['path'])}")
