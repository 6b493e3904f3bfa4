"""Holds the documents to the code: links, tables, states, commands and versions are what the code says."""

import ast
import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

import shared
from producer import kinds
from producer.aggregate.queries import TARGETS
from producer.cli.main import COMMANDS
from shared.contracts.query_vocabulary import CHECKS
from shared.names import FINAL_STATES, RunState
from shared.settings import Settings, describe, variable_of
from tests.chaos import reliability
from tests.chaos.faults import FAULTS
from tests.support.tree import ROOT, project_files, shown

DOCUMENTS: Final = [path for path in project_files() if path.suffix == ".md" and "golden" not in path.parts]
LINK: Final = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND: Final = re.compile(r"(?:^|`|\$ )(proctor|make) ([a-z][a-z0-9-]*)", re.MULTILINE)

DEPENDS_ON_THE_MACHINE: Final = {"data_dir": "the user's data folder", "processes": "cores, at most 4"}
"""Defaults that the table describes in words."""


def slug(heading: str) -> str:
    """The anchor of a heading.

    >>> slug("Where things are kept")
    'where-things-are-kept'
    """
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    """Anchors of a document's headings."""
    return {slug(line.lstrip("#")) for line in document.read_text().splitlines() if line.startswith("#")}


def make_targets() -> set[str]:
    """Commands of the Makefile."""
    return set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def shown_value(value: object) -> str:
    """A default as the table prints it."""
    if value is None:
        return "none"
    return f"{value:,}".removesuffix(".0") if isinstance(value, int | float) else str(value)


def settings_table() -> str:
    """The table of settings that docs/operations.md should hold."""
    source = ast.parse(inspect.getsource(Settings)).body[0]
    assert isinstance(source, ast.ClassDef)
    meanings = {
        ast.unparse(field.target): str(text.value.value)
        for field, text in zip(source.body, source.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for setting in describe(Settings.from_environment({"HOME": "/"})):
        default = DEPENDS_ON_THE_MACHINE.get(setting.name, shown_value(setting.value))
        rows.append(f"| `{variable_of(setting.name)}` | {default} | {meanings[setting.name]} |")
    return "\n".join(rows)


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_links_lead_somewhere(document: Path) -> None:
    """Each link to a file of the project leads to a file, and its anchor to a heading."""
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if link.startswith(("https://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        assert target.exists(), f"{shown(document)} links to {link}"
        assert not anchor or anchor in anchors(target), f"{shown(document)} links to {link}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=shown)
def test_commands_in_documents_exist(document: Path) -> None:
    """Each `proctor …` and `make …` that a document names is a command."""
    known = {"proctor": set(COMMANDS), "make": make_targets()}
    wrong = [
        f"{program} {word}"
        for program, word in COMMAND.findall(document.read_text(encoding="utf-8"))
        if word not in known[program]
    ]
    assert not wrong, f"{shown(document)} names {', '.join(wrong)}"


def test_settings_table_is_the_settings() -> None:
    """docs/operations.md lists every setting with its default and the sentence that stands in the code."""
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- settings: .*? -->\n(.*?)\n<!-- end of settings -->", text, re.DOTALL)
    assert found
    assert found[1] == settings_table(), f"the table should be:\n{settings_table()}"


def test_every_metric_of_gates_is_documented() -> None:
    """docs/exports.md, or docs/judges.md for those of judges, names each number that --fail-on accepts."""
    text = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("exports.md", "judges.md"))
    metrics = {name for each in kinds.declared() for name in each.metrics()}
    assert not {name for name in metrics if f"`{name}" not in text}


def test_checks_and_targets_of_queries_are_documented() -> None:
    """The tutorial of queries lists the six checks and the five targets, in the order of reports."""
    text = (ROOT / "docs" / "tutorial-queries.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == CHECKS
    found = re.findall(r"^\| ([\w ]+) \| `(\w+)` \|.*\| `(.+)` \|$", text, re.MULTILINE)
    assert found == [(target.label, target.metric, target.wanted()) for target in TARGETS]


def test_reliability_shows_the_measured_matrix() -> None:
    """docs/reliability.md has a row for each fault of the table, and says what was measured."""
    measured = json.loads(reliability.MEASURED.read_text(encoding="utf-8"))
    text = reliability.DOCUMENT.read_text(encoding="utf-8")
    assert text == reliability.written(text, measured), "run `make reliability`"
    shown_rows = dict.fromkeys(line["fault"] for line in measured["lines"])
    assert list(shown_rows) == [fault.name for fault in FAULTS], "run `make reliability`"


def test_architecture_draws_every_run_state() -> None:
    """The diagram of a run's life knows exactly the states of the code."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    diagram = next(body for _, body in BLOCK.findall(text) if "loading --> running" in body)
    drawn = set(re.findall(r"\b([a-z]+) -->", diagram)) | set(re.findall(r"--> ([a-z]+)", diagram))
    assert drawn == {str(state) for state in RunState}
    assert {state for state in FINAL_STATES if f"{state} --> running: retry" in diagram} == FINAL_STATES


def test_changelog_keeps_its_form() -> None:
    """CHANGELOG.md has an Unreleased section, known headings, and the version of the code when released."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert len(sections) == 1 or sections[1] == shared.__version__
    known = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= known


def test_readme_names_the_oldest_python() -> None:
    """README.md and pyproject.toml agree on the oldest Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"Python {project['requires-python'].replace('>=', '≥ ')}" in (ROOT / "README.md").read_text()


def test_decisions_are_dated() -> None:
    """Each decision has a date and a reason of more than one line."""
    text = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    for decision in text.split("\n## ")[1:]:
        title, first, *rest = decision.splitlines()
        assert re.match(r"\*\d{4}-\d{2}-\d{2}\.\* \S", first) or re.match(
            r"\*\d{4}-\d{2}-\d{2}\.\*$", first
        ), title
        assert len(first) > 80 or "".join(rest).strip(), title
