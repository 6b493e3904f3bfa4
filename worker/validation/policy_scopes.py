"""Finds which names the parts of a Python file bind, and which of them come from modules."""

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from worker.validation.policy_vocabulary import MODULES

Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Member(NamedTuple):
    """What a name of the file stands for: a module, or something of one."""

    module: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def imports(tree: ast.Module) -> Iterator[tuple[str, Member]]:
    """The names that imports give, wherever they stand in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or whole, Member(whole)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found = Member(whole) if whole in MODULES else Member(node.module or "", alias.name)
                yield alias.asname or alias.name, found


def only_texts(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """What is assigned to each name; a name that is bound in any other way is left with what is no text."""
    found: dict[str, list[ast.expr]] = {}
    plain: set[int] = set()
    for node in ast.walk(tree):
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, node.value)]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(value)
                plain.add(id(target))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in plain:
            found.setdefault(node.id, []).append(node)
        elif not isinstance(node, ast.Name):
            for name in binds(node):
                found.setdefault(name, []).append(ast.Name(name, ast.Load()))
    return found


def binds(node: ast.AST) -> list[str]:  # noqa: PLR0911 - one kind of node a line
    """The names that one node itself binds."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name):
            return [name]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [each.asname or each.name.partition(".")[0] for each in names]
        case _:
            return []


def bound(node: ast.AST) -> frozenset[str]:
    """The names that a piece of a function binds in that function."""
    return frozenset(name for part in walk([node]) for name in binds(part))


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of one scope: of functions and classes in it the names, of comprehensions what `:=` binds.

    Each node is part of one scope, so that all scopes of a file together are walked in time linear in it.
    """
    todo = [(node, False) for node in nodes]
    while todo:
        node, is_inside = todo.pop()
        if not is_inside:
            yield node
        elif isinstance(node, ast.NamedExpr):
            yield node.target
        if not isinstance(node, SCOPES):
            is_inside = is_inside or isinstance(node, Comprehension)
            todo += [(child, is_inside) for child in ast.iter_child_nodes(node)]


def outside(arguments: ast.arguments) -> list[ast.expr]:
    """What of a function's head is read outside it: defaults and annotations."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each]
    annotations = [each.annotation for each in every if each.annotation]
    return [*arguments.defaults, *(each for each in arguments.kw_defaults if each), *annotations]


class OwnNames:
    """Which names a function around binds, while a file is walked; a scope costs what it names."""

    def __init__(self) -> None:
        self._inner: dict[str, list[bool]] = {}

    def __contains__(self, name: str) -> bool:
        found = self._inner.get(name)
        return bool(found and found[-1])

    @contextmanager
    def scope(self, own: Iterable[str], hidden: Iterable[str]) -> Iterator[None]:
        """Enters a scope with names of its own, where `hidden` ones are not those of the scopes around."""
        entered = [(name, False) for name in hidden] + [(name, True) for name in own]
        for name, is_own in entered:
            self._inner.setdefault(name, []).append(is_own)
        try:
            yield
        finally:
            for name, _ in entered:
                self._inner[name].pop()
