"""Counts what makes code hard to follow: keys without types, late imports, circles, words with two meanings.

`python -m tests.project.house_counts` prints the table; `test_house_counts.py` holds each figure down.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT, python_files

PACKAGES: Final = ("shared", "worker", "producer")


@cache
def trees() -> Mapping[str, ast.Module]:
    """The syntax trees of the product's modules by import name."""
    return {_module(path): ast.parse(path.read_text(encoding="utf-8")) for path in product_files()}


def product_files() -> list[Path]:
    """The product's Python files, without tests and examples."""
    return [path for path in python_files() if path.relative_to(ROOT).parts[0] in PACKAGES]


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _nodes_of(module: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(trees()[module]))


def _nodes(package: str = "") -> Iterator[ast.AST]:
    for name in trees():
        if name.startswith(package):
            yield from _nodes_of(name)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def keys_read() -> int:
    """`x["key"]` and `x.get("key")` in the producer."""
    subscripts = sum(
        isinstance(node, ast.Subscript)
        and _is_text(node.slice)
        and isinstance(node.ctx, ast.Load)
        and not (isinstance(node.value, ast.Name) and node.value.id == "Literal")
        for node in _nodes("producer")
    )
    gets = sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and bool(node.args)
        and _is_text(node.args[0])
        for node in _nodes("producer")
    )
    return subscripts + gets


def type_checking_blocks() -> int:
    """`if TYPE_CHECKING:`, but for the files of kinds, each of which has one."""
    return sum(
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for module in trees()
        if not _is_kind(module)
        for node in _nodes_of(module)
    )


def late_imports() -> int:
    """Import statements inside of functions, but for the methods of kinds, which are there to import late."""
    return sum(_late_imports_of(module) for module in trees() if not _is_kind(module))


def late_imports_of_kinds() -> int:
    """Import statements inside of the methods of kinds."""
    return sum(_late_imports_of(module) for module in trees() if _is_kind(module))


def _is_kind(module: str) -> bool:
    return module == "worker.kinds" or (module.startswith("producer.") and module.endswith(".kind"))


def _late_imports_of(module: str) -> int:
    return sum(
        isinstance(inner, ast.Import | ast.ImportFrom)
        for node in _nodes_of(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    )


def multiplied_flags() -> int:
    """`[x] * flag` and `"text" * flag`: a condition that is written as a product."""
    return sum(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mult)
        and any(
            isinstance(side, ast.List | ast.Tuple | ast.JoinedStr)
            or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
            for side in (node.left, node.right)
        )
        and any(_is_condition(side) for side in (node.left, node.right))
        for node in _nodes()
    )


def _is_condition(node: ast.expr) -> bool:
    """Whether an expression is true or false by its form or its name."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"bool", "any", "all", "isinstance"}
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return name.startswith(("is_", "has_", "are_", "was_"))
    return isinstance(node, ast.Compare | ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    )


def words_with_two_meanings() -> list[str]:
    """Public class names that several modules define."""
    homes = defaultdict[str, set[str]](set)
    for module, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].add(module)
    return sorted(f"{name}: {', '.join(sorted(found))}" for name, found in homes.items() if len(found) > 1)


def circles() -> list[list[str]]:
    """Groups of modules that import each other; imports for types, in functions and by name count too."""
    graph = {module: sorted(_imported(module)) for module in trees()}
    return [sorted(group) for group in _components(graph) if len(group) > 1]


@cache
def _imported(module: str) -> frozenset[str]:
    found = set[str]()
    for node in _nodes_of(module):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in trees() else str(node.module) for name in names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
    return frozenset(found & trees().keys()) - {module}


def _components(graph: Mapping[str, list[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan 1972), without recursion."""
    index, low, stack, on_stack = dict[str, int](), dict[str, int](), list[str](), set[str]()
    found = list[list[str]]()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(stack[at:])
                    on_stack -= set(stack[at:])
                    del stack[at:]
    return found


def lines(package: str = "") -> int:
    """Lines of the product's Python files."""
    files = [path for path in product_files() if _module(path).startswith(package)]
    return sum(path.read_text(encoding="utf-8").count("\n") for path in files)


def docstring_lines() -> int:
    """Lines of docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = 0
    for node in _nodes():
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            found += (first.end_lineno or 0) - first.lineno + 1
    return found


def one_importer() -> int:
    """Modules that a single other module imports."""
    importers = Counter(name for module in trees() for name in _imported(module))
    return sum(number == 1 for number in importers.values())


COUNTS: Final[Mapping[str, Callable[[], int]]] = {
    "keys read by text in producer/": keys_read,
    "TYPE_CHECKING blocks": type_checking_blocks,
    "imports in functions": late_imports,
    "imports in the methods of kinds": late_imports_of_kinds,
    "import circles, all imports counted": lambda: len(circles()),
    "conditions written as products": multiplied_flags,
    "public class names with two meanings": lambda: len(words_with_two_meanings()),
    "modules": lambda: len(trees()),
    "modules with one importer": one_importer,
    "lines": lines,
    "lines of producer/report": lambda: lines("producer.report"),
    "lines of producer/cli": lambda: lines("producer.cli"),
    "lines of producer/schemas": lambda: lines("producer.schemas"),
    "lines of docstrings": docstring_lines,
}


def main() -> None:
    """Prints the table."""
    for name, count in COUNTS.items():
        sys.stdout.write(f"{count():8,}  {name}\n")
    for circle in circles():
        sys.stdout.write(f"circle of {len(circle)}: {', '.join(circle)}\n")
    for word in words_with_two_meanings():
        sys.stdout.write(f"{word}\n")


if __name__ == "__main__":
    main()
