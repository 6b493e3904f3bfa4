"""Tests that the zygote loads whatever the functions of allowed modules import."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT
from worker.sandbox import preloaded
from worker.validation.policy_vocabulary import MODULES

NEVER_CALLED: Final = frozenset({"argparse", "tracemalloc", "atexit", "gc"})
"""Imported by the modules' own command lines, and to show warnings, which are ignored."""
PRINT: Final = (
    "import sys, types\n"
    "package = types.ModuleType('worker.sandbox')\npackage.__path__ = [sys.argv[1]]\n"
    "sys.modules |= {'worker': types.ModuleType('worker'), 'worker.sandbox': package}\n"
    "from worker.sandbox import preloaded\npreloaded.load()\nprint(*sys.modules)\n"
)


def loaded() -> set[str]:
    """The modules of an isolated interpreter that has loaded them."""
    command = [sys.executable, "-I", "-S", "-E", "-c", PRINT, str(ROOT / "worker" / "sandbox")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(ran.stdout.split())


def later_imports(module: str) -> Iterator[str]:
    """What the functions of a module import."""
    spec = find_spec(module)
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for part in (part for function in functions for part in ast.walk(function)):
        if isinstance(part, ast.Import):
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module and not part.level:
            yield part.module


def test_every_allowed_module_is_loaded_with_what_it_imports_later() -> None:
    """No import is left for the time after the lock, in the allowed modules and in those that they use."""
    found = loaded()
    assert set(MODULES) <= found
    # The modules that come with every interpreter, such as codecs, import more than any validator can cause.
    named = f"{preloaded.ALLOWED} {preloaded.LAZY}".split()
    later = {name: set(later_imports(name)) - found - NEVER_CALLED for name in named if name != "inspect"}
    assert {name: missing for name, missing in later.items() if missing} == {}
