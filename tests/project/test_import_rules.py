"""Holds the import rules: who may import whom, no rings, and which library belongs to which files."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

from tests.support.tree import ROOT, python_files

PACKAGES: Final = ("shared", "worker", "producer")

HOMES: Final = {
    "redis": ("shared.server", "shared.ledger", "shared.runs"),
    "amqp": (),
    "valkey": (),
    "celery": ("shared.broker", "worker"),
    "kombu": ("shared.broker", "shared.queues", "worker"),
    "litellm": (),
    "structlog": ("worker.logs", "worker.tasks"),
    "opentelemetry": ("shared.observability.otel",),
}
"""Libraries that are imported at run time by these modules and packages, and by no others."""


@cache
def modules() -> dict[str, Path]:
    """Our modules by import name."""
    named = {}
    for path in python_files():
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] in PACKAGES:
            named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


def statements(body: list[ast.stmt], *, everywhere: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements that run: with the module, or `everywhere`; never those for type checkers only."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from statements(node.orelse, everywhere=everywhere)
        elif everywhere or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []), everywhere=everywhere)
            for handler in getattr(node, "handlers", []):
                yield from statements(handler.body, everywhere=everywhere)


@cache
def tree_of(module: str) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def imported(module: str, *, everywhere: bool = False) -> set[str]:
    """Names that a module imports; of ours the module or package meant, of others the top-level name."""
    found = set()
    for node in statements(tree_of(module).body, everywhere=everywhere):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, f"{module} imports relatively"
            names = [
                f"{node.module}.{alias.name}"
                if f"{node.module}.{alias.name}" in modules()
                else str(node.module)
                for alias in node.names
            ]
        found.update(names)
    return {name if name in modules() else name.split(".")[0] for name in found} - {module}


def test_contracts_between_packages_are_kept() -> None:
    """`lint-imports` finds every contract of pyproject.toml kept."""
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_are_no_import_rings() -> None:
    """Modules can be put in an order in which each imports only earlier ones."""
    graph = {module: imported(module) & modules().keys() for module in modules()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize("library", HOMES)
def test_each_library_stays_in_its_files(library: str) -> None:
    """Who replaces or mocks a library need look at its few files only."""
    strangers = [
        module
        for module in modules()
        if library in imported(module, everywhere=True)
        and not any(module == home or module.startswith(f"{home}.") for home in HOMES[library])
    ]
    assert not strangers, f"{library} is imported by {', '.join(strangers)}"


def test_the_tests_folders_are_no_packages() -> None:
    """No `__init__.py` stands under tests/: a package called `shared` there would hide our own `shared`."""
    assert not list((ROOT / "tests").rglob("__init__.py"))
