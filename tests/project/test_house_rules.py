"""Holds the rules that no linter knows over every file of the project."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Final

import pytest

from shared.kinds import all_kinds
from tests.support import structure
from tests.support.tree import ROOT, project_files, python_files, shown

MAX_FILE_LINES: Final = 500
MAX_FUNCTION_LINES: Final = 40
MAX_KIND_BRANCHES: Final = 6
"""Files outside of `kinds` that ask which kind something is."""
MAX_LOOSE: Final = 12
"""Modules of `shared/` that stand in no room."""
REPEATED_NAMES: Final = {
    "one file for each kind": frozenset({"items", *(kind.name for kind in all_kinds())}),
    "one file for each part of a kind, in its folder": frozenset(
        {
            "documents",
            "results",
            "totals",
            "gates",
            "names",
            "options",
            "load",
            "compare",
            "retry",
            "kind",
            "facts",
        }
    ),
    "one file for each part of a kind's reports": frozenset(
        {"html_rows", "html_summary", "opened_rows", "run_report", "terminal", "wording"}
        | {f"to_{name}" for name in ("csv", "html", "jsonl", "junit", "markdown")}
    ),
    "one declaration for each side": frozenset({"kinds", "__main__"}),
    "a contract and its engine, both named by the documents": frozenset({"checks"}),
}
"""Why base names of modules may stand in several folders."""
DEFENCE: Final = re.compile(r"longer than (500|40) lines", re.IGNORECASE)
"""What the docstring of a longer file or function says, followed by its reason."""

SENTENCE: Final = re.compile(r"""^(r?"{3}|-- |# )[A-Z0-9`'].*\s.*\s""")
"""How a first line begins; a longer sentence goes on below."""
EXCEPTION: Final = re.compile(r"#\s*((ruff:\s*)?noqa|type:\s*ignore|pragma:|fmt:\s*off|mypy:)")
REASONED: Final = re.compile(
    r"# (ruff: )?noqa: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)* - .*\w{4}"
    r"|# type: ignore\[[a-z-]+(, ?[a-z-]+)*\]\s+# .*\w{4}"
    r"|# pragma: no cover - .*\w{4}"
)

# Spelt in pieces, or this file would break its own rule.
PLACES: Final = {
    "a path of one machine": re.compile("(?<![\\w.])/(" + "wo" + "rk|ro" + "ot|ho" + "me/[a-z]+)/"),
    "the host of a package registry": re.compile(
        r"(pypi|pythonhosted|npmjs|crates|debian|ubuntu|docker|quay|ghcr)" + r"\.(org|com|io)\b",
        re.IGNORECASE,
    ),
    "a merge that was not resolved": re.compile(r"^(<{7}|>{7}) "),
    "unfinished work": re.compile(r"\b(TO" + "DO|FIX" + r"ME|X" + r"XX)\b|Not" + "ImplementedError"),
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def text_of(path: Path) -> str:
    """The file's text; empty for a binary file."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


@cache
def tree_of(path: Path) -> ast.Module:
    """A Python file's syntax tree."""
    return ast.parse(text_of(path))


def first_sentence(path: Path) -> str | None:
    """The line that says what the file is for; none where the format has no comments."""
    lines = [*text_of(path).splitlines()[:2], "", ""]
    line = lines[1] if lines[0].startswith("#!") else lines[0]
    if path.suffix in {".py", ".lua", ".sh", ".toml", ".yaml", ".yml"} or path.name in {"Makefile", "run"}:
        return line
    return None


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a Python file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, Function):
            yield node


def code_lines(function: Function) -> int:
    """Lines of a function's body, without signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


INPUTS: Final = ROOT / "tests" / "data" / "promptfoo"
"""Configurations as people write them."""


def test_every_file_begins_with_a_sentence() -> None:
    """Line 1 of each file (line 2 of a script) says in a sentence what the file is for."""
    wrong = [
        f"{shown(path)}: {line!r}"
        for path in project_files()
        if INPUTS not in path.parents
        and (line := first_sentence(path)) is not None
        and not SENTENCE.match(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_file_is_long_without_a_reason() -> None:
    """A Python file above 500 lines says in its docstring why it is longer than 500 lines."""
    wrong = [
        f"{shown(path)}: {lines} lines"
        for path in python_files()
        if (lines := len(text_of(path).splitlines())) > MAX_FILE_LINES
        and not DEFENCE.search(ast.get_docstring(tree_of(path)) or "")
    ]
    assert not wrong, "\n".join(wrong)


def test_no_function_is_long_without_a_reason() -> None:
    """A function above 40 lines says in its docstring why it is longer than 40 lines."""
    wrong = [
        f"{shown(path)}:{function.lineno}: {function.name} has {code_lines(function)} lines"
        for path in python_files()
        for function in functions(path)
        if code_lines(function) > MAX_FUNCTION_LINES and not DEFENCE.search(ast.get_docstring(function) or "")
    ]
    assert not wrong, "\n".join(wrong)


def test_shared_has_rooms() -> None:
    """At most a dozen modules stand loose in `shared/`: what belongs together has a folder."""
    loose = sorted(path.name for path in (ROOT / "shared").glob("*.py") if path.stem != "__init__")
    assert len(loose) <= MAX_LOOSE, f"put some of these into a folder: {', '.join(loose)}"


def test_base_names_of_modules_repeat_only_where_folders_have_one_shape() -> None:
    """A name says which module it is; a command may have the name of what it calls."""
    allowed = frozenset[str]().union(*REPEATED_NAMES.values())
    found: dict[str, list[str]] = {}
    for path in python_files():
        parts = path.relative_to(ROOT).parts
        if parts[0] in {"shared", "worker", "producer"} and parts[-2] != "commands":
            found.setdefault(path.stem, []).append(shown(path))
    wrong = [
        " and ".join(paths)
        for name, paths in sorted(found.items())
        if len(paths) > 1 and name not in allowed | {"__init__"}
    ]
    assert not wrong, "\n".join(wrong)


def compares_kinds(node: ast.AST) -> bool:
    """Whether a comparison asks which kind of work something is."""
    if not isinstance(node, ast.Compare):
        return False
    sides = {ast.unparse(side).strip("{}()") for side in (node.left, *node.comparators)}
    named = {part.strip() for side in sides for part in side.split(",")}
    texts = {f"'{name}'" for name in ("turns", "cases", "queries")}
    asks_kind = any(side.split(".")[-1] == "kind" for side in sides)
    return bool(named & {"TURNS", "CASES", "QUERIES"}) or (asks_kind and bool(named & texts))


def test_few_files_ask_which_kind_it_is() -> None:
    """What differs between kinds is data of their declarations; few files outside of them compare kinds."""
    wrong = [
        shown(path)
        for path in python_files()
        if path.relative_to(ROOT).parts[0] in {"shared", "worker", "producer"}
        and path.stem not in {"kind", "kinds"}
        and any(compares_kinds(node) for node in ast.walk(tree_of(path)))
    ]
    assert len(wrong) <= MAX_KIND_BRANCHES, "put the difference into a declaration: " + ", ".join(wrong)


def test_every_step_of_a_call_path_is_drawn() -> None:
    """The call paths of docs/pictures/call-paths.toml name modules that exist, and each is in the picture."""
    paths = tomllib.loads(structure.PATHS.read_text(encoding="utf-8"))["paths"]
    drawn = structure.drawing(structure.read_imports(ROOT), paths)
    missing = [title for title in paths if escape(title) not in drawn]
    assert paths, "there are call paths"
    assert not missing, missing


def test_nothing_sleeps() -> None:
    """Code and tests wait for the thing itself: nobody imports or calls `time.sleep`."""
    wrong = [
        f"{shown(path)}:{node.lineno}"
        for path in python_files()
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr == "sleep" and ast.unparse(node.value) == "time")
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "time"
            and "sleep" in {a.name for a in node.names}
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_to_a_rule_has_its_reason_on_the_line() -> None:
    """A `noqa` or `type: ignore` names its rule and says why, on the same line."""
    wrong = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in python_files()
        if path != Path(__file__)
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if EXCEPTION.search(line) and not REASONED.search(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("what", PLACES)
def test_no_file_names_what_does_not_belong_in_it(what: str) -> None:
    """No file names a path of one machine, a registry's host, or work left undone."""
    wrong = [
        f"{shown(path)}:{number}: {line.strip()[:120]}"
        for path in project_files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if PLACES[what].search(line)
    ]
    assert not wrong, "\n".join(wrong)
