"""The rules of the static policy, as a visitor that tracks which names are local to a function.

A function's own name hides a builtin for good: Python never looks further once a function binds a name. A
name that is bound at the top of the file, or in a class, may or may not hide one, so there a blocked name
stays blocked.
"""

import ast
from collections.abc import Iterable
from typing import Final

from worker.validation.policy_scopes import (
    Comprehension,
    Member,
    OwnNames,
    binds,
    bound,
    imports,
    only_texts,
    outside,
    walk,
)
from worker.validation.policy_vocabulary import (
    ATTRIBUTE_CALLS,
    BLOCKED_NAMES,
    CALLED_PLAINLY,
    FOLLOWED_NAMES,
    FORMATTING,
    MODULES,
    NAMED_AT_RUN_TIME,
    OPEN_DUNDER_NAMES,
    PolicyViolation,
    attribute_problem,
    format_problem,
    member_problem,
    missing_problem,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
ONE_ARGUMENT: Final = 1
IMPORTS, WALK, BLOCKED = "imports", "modules inside modules", "blocked name"
SPECIAL, COMPUTED, FORMATS = "blocked attribute", "attributes named at run time", "formats"
BUILT_CLASS: Final = "classes made by type()"


class PolicyRules(ast.NodeVisitor):
    """Raises a `PolicyViolation` at the first thing that validators may not do.

    Args:
        tree: the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._imported = dict(imports(tree))
        self._texts = only_texts(tree)
        self._own = OwnNames()
        self._members: dict[int, tuple[ast.expr, Member | None]] = {}
        self._format_problems: dict[str, str | None] = {}
        self._tries = 0

    def visit_Import(self, node: ast.Import) -> None:
        """Only modules of the list."""
        for alias in node.names:
            if alias.name not in MODULES:
                raise PolicyViolation(node, f"import of {alias.name} is not allowed", IMPORTS)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Only public names of modules of the list, each by its name."""
        if node.module == "__future__" and not node.level:
            return
        module = node.module or ""
        if node.level or module not in MODULES:
            shown = "." * node.level + module
            raise PolicyViolation(node, f"import from {shown} is not allowed", IMPORTS)
        for alias in node.names:
            if alias.name == "*":
                raise PolicyViolation(
                    node, f"import of everything from {node.module} is not allowed", IMPORTS
                )
            if problem := member_problem(module, alias.name):
                raise PolicyViolation(node, problem, WALK)
            if not self._tries and (problem := missing_problem(module, alias.name)):
                raise PolicyViolation(node, problem, IMPORTS)

    def visit_Try(self, node: ast.Try) -> None:
        """An import that may fail is the file's own business."""
        self._tries += 1
        self.generic_visit(node)
        self._tries -= 1

    def visit_Name(self, node: ast.Name) -> None:
        """No blocked builtin, no module as a value, nothing that takes attributes' names."""
        name = node.id
        if name in FOLLOWED_NAMES and not isinstance(node.ctx, ast.Load):
            raise PolicyViolation(node, f"{name} may not be set", COMPUTED)
        if name in self._own:
            return
        if name in BLOCKED_NAMES and isinstance(node.ctx, ast.Load):
            raise PolicyViolation(node, f"{name} is blocked", BLOCKED)
        if name.startswith("__") and name.endswith("__") and name not in OPEN_DUNDER_NAMES:
            raise PolicyViolation(node, f"{name} is blocked", BLOCKED)
        if name in ATTRIBUTE_CALLS and isinstance(node.ctx, ast.Load):
            raise PolicyViolation(
                node, f"{name} may only be called, with an attribute's name written out", COMPUTED
            )
        member = self._member(node)
        if member is not None:
            self._check_value(node, member)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """No special attribute, no module inside a module, no format made at run time."""
        if problem := attribute_problem(node.attr):
            raise PolicyViolation(node, problem, SPECIAL)
        if node.attr in FOLLOWED_NAMES and not isinstance(node.ctx, ast.Load):
            raise PolicyViolation(node, f"{node.attr} may not be set", COMPUTED)
        above = self._member(node.value)
        if above is not None:
            if not isinstance(node.ctx, ast.Load):
                raise PolicyViolation(node, f"{above} may not be changed", WALK)
            if not above.name:
                self._check_member(node, above.module, node.attr)
                whole = self._member(node)
                if whole is not None:
                    self._check_value(node, whole)
                return
        if node.attr in FORMATTING:
            self._check_format(node)
        # Names and members were looked at above as what they are for: the left side of a dot.
        if above is None or not isinstance(node.value, ast.Name):
            self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """`getattr` and its kind with names written out; `type` to ask, not to make."""
        called: ast.expr | None = node.func
        arguments = list(node.args)
        if isinstance(called, ast.Name) and called.id not in self._own:
            if called.id in ATTRIBUTE_CALLS:
                arguments = self._check_attribute_call(node, called.id)
                called = None
            elif called.id == "type" and not _is_question(node):
                raise PolicyViolation(node, "type may only be asked for the type of something", BUILT_CLASS)
        member = None if called is None else self._member(called)
        if member in NAMED_AT_RUN_TIME:
            self._check_named(node, str(member))
            return
        if member is not None and member in CALLED_PLAINLY:
            self._check_plainly_called(node, member)
            return
        for part in ([] if called is None else [called]) + arguments + list(node.keywords):
            self.visit(part)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """No special name as a key: `x['__builtins__']`."""
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            is_special = key.value.startswith("__") and key.value not in OPEN_DUNDER_NAMES
            if is_special and attribute_problem(key.value):
                raise PolicyViolation(node, f"key {key.value!r} is blocked", SPECIAL)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        """Patterns read attributes too."""
        for name in node.kwd_attrs:
            if problem := attribute_problem(name):
                raise PolicyViolation(node, problem, SPECIAL)
            if name in FORMATTING:
                raise PolicyViolation(node, f"{name} needs a format that is written out", FORMATS)
        self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Attributes of trees can be set by keyword."""
        if node.arg in FOLLOWED_NAMES:
            raise PolicyViolation(node, f"{node.arg} may not be set", COMPUTED)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """A function's own names hide builtins inside it."""
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """The same."""
        self._visit_function(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """What a class binds is looked for at the top of the file, not in the functions around it."""
        self._visit_all([*node.decorator_list, *node.bases, *node.keywords])
        self._visit_inside(frozenset(), node.body, hidden=frozenset[str]().union(*map(bound, node.body)))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """The same; a lambda binds its parameters, and what a walrus in it names."""
        self._visit_all(outside(node.args))
        self._visit_inside(bound(node.args) | bound(node.body), [node.body])

    def visit_ListComp(self, node: ast.ListComp) -> None:
        """Its variables are its own."""
        self._visit_comprehension(node, [node.elt])

    def visit_SetComp(self, node: ast.SetComp) -> None:
        """Its variables are its own."""
        self._visit_comprehension(node, [node.elt])

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        """Its variables are its own."""
        self._visit_comprehension(node, [node.elt])

    def visit_DictComp(self, node: ast.DictComp) -> None:
        """Its variables are its own."""
        self._visit_comprehension(node, [node.key, node.value])

    def _visit_function(self, node: Function) -> None:
        if node.name in FOLLOWED_NAMES:
            raise PolicyViolation(node, f"{node.name} may not be set", COMPUTED)
        annotations = [node.returns] if node.returns else []
        self._visit_all([*node.decorator_list, *outside(node.args), *annotations])
        names = bound(node.args).union(*map(bound, node.body))
        parts = list(walk(node.body))
        free = {name for part in parts if isinstance(part, ast.Global) for name in part.names}
        free |= {
            name for part in parts if isinstance(part, ast.Import | ast.ImportFrom) for name in binds(part)
        }
        elsewhere = {name for part in parts if isinstance(part, ast.Nonlocal) for name in part.names}
        self._visit_inside(names - free - elsewhere, node.body, hidden=frozenset(free))

    def _visit_comprehension(self, node: Comprehension, values: list[ast.expr]) -> None:
        self.visit(node.generators[0].iter)  # read outside, where its variables are not bound yet
        targets = frozenset[str]().union(*(bound(each.target) for each in node.generators))
        inside: list[ast.AST] = [*values]
        for place, each in enumerate(node.generators):
            inside += [each.target, *each.ifs] + ([each.iter] if place else [])
        self._visit_inside(targets, inside)

    def _visit_inside(
        self, own: frozenset[str], nodes: Iterable[ast.AST], hidden: frozenset[str] = frozenset()
    ) -> None:
        """Visits a scope with names of its own, where `hidden` ones are not those of the scopes around."""
        with self._own.scope(own, hidden):
            self._visit_all(nodes)

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _member(self, node: ast.expr) -> Member | None:
        """The module, or the member of one, that an expression names outright; each is looked up once."""
        if isinstance(node, ast.Name):
            return None if node.id in self._own else self._imported.get(node.id)
        if not isinstance(node, ast.Attribute):
            return None
        if id(node) not in self._members:
            self._members[id(node)] = node, self._looked_up(node)
        return self._members[id(node)][1]

    def _looked_up(self, node: ast.Attribute) -> Member | None:
        if (above := self._member(node.value)) is not None:
            whole = f"{above}.{node.attr}"
            if above.name:
                return Member(above.module, f"{above.name}.{node.attr}")
            return Member(whole) if whole in MODULES else Member(above.module, node.attr)
        return None

    def _check_member(self, node: ast.AST, module: str, name: str) -> None:
        if problem := member_problem(module, name):
            raise PolicyViolation(node, problem, WALK)

    def _check_value(self, node: ast.expr, member: Member) -> None:
        """What an allowed module's name may be used for, other than to stand left of a dot."""
        if not member.name and not isinstance(getattr(node, "ctx", None), ast.Store):
            raise PolicyViolation(node, f"module {member} may only be used as {member}.name", WALK)
        if member in NAMED_AT_RUN_TIME or member in CALLED_PLAINLY:
            raise PolicyViolation(node, f"{member} may only be called, with names written out", COMPUTED)

    def _check_attribute_call(self, node: ast.Call, name: str) -> list[ast.expr]:
        """Checks `getattr(x, "name")`; returns the arguments that are still to be looked at."""
        key = node.args[1] if len(node.args) > ONE_ARGUMENT else None
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str) or node.keywords:
            raise PolicyViolation(node, f"{name} needs the attribute's name written out", COMPUTED)
        self.visit_Attribute(
            ast.copy_location(
                ast.Attribute(node.args[0], key.value, ast.Load() if name == "getattr" else ast.Store()), node
            )
        )
        return node.args[2:]

    def _check_named(self, node: ast.Call, name: str) -> None:
        """Checks `attrgetter("a.b")` and `methodcaller("name", …)`."""
        if not node.args or any(keyword.arg is None for keyword in node.keywords):
            raise PolicyViolation(node, f"{name} needs names written out", COMPUTED)
        names = node.args[:1] if name.endswith("methodcaller") else node.args
        for each in names:
            if not isinstance(each, ast.Constant) or not isinstance(each.value, str):
                raise PolicyViolation(node, f"{name} needs names written out", COMPUTED)
            for part in each.value.split("."):
                if problem := attribute_problem(part):
                    raise PolicyViolation(node, problem, SPECIAL)
                if part in FORMATTING:
                    raise PolicyViolation(node, f"{name} may not name {part}", FORMATS)
        self._visit_all([*node.args, *node.keywords])

    def _check_plainly_called(self, node: ast.Call, member: Member) -> None:
        """Checks `update_wrapper(wrapper, wrapped)` and `wraps(wrapped)`, which could copy any attribute."""
        has_stars = any(isinstance(each, ast.Starred) for each in node.args)
        if (
            has_stars
            or len(node.args) > CALLED_PLAINLY[member]
            or any(keyword.arg not in {"wrapper", "wrapped"} for keyword in node.keywords)
        ):
            raise PolicyViolation(node, f"{member} may not be given a list of attributes to copy", COMPUTED)
        self._visit_all([*node.args, *node.keywords])

    def _check_format(self, node: ast.Attribute) -> None:
        """Formats are texts of the file, without attributes that are blocked."""
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name not in self._format_problems:
                self._format_problems[name] = _problem_of_formats(self._texts.get(name) or [node.value])
            problem = self._format_problems[name]
        else:
            problem = _problem_of_formats([node.value])
        if problem is not None:
            raise PolicyViolation(node, problem or f"{node.attr} needs a format that is written out", FORMATS)


def _problem_of_formats(texts: list[ast.expr]) -> str | None:
    """Why these may not be formats; empty when one is not written out."""
    for text in texts:
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            return ""
        if problem := format_problem(text.value):
            return problem
    return None


def _is_question(node: ast.Call) -> bool:
    """Whether a call of `type` only asks; with three arguments it makes a class."""
    return len(node.args) == ONE_ARGUMENT and not node.keywords and not isinstance(node.args[0], ast.Starred)
