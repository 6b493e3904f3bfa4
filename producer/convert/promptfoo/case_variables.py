"""Makes cases of tests: one for each combination of values of their variables."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import product
from math import prod
from typing import Any, Final

from producer.cases.bench_files import CONFIG_BYTES
from producer.convert.nunjucks import KnownVariables, is_nunjucks, to_jinja
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.providers import script_of
from producer.convert.promptfoo.suite import Assertion, Suite, Test
from producer.convert.promptfoo.written import WrittenTestOptions, read
from producer.convert.report import CaseCount
from producer.load.problems import Place
from shared.errors import WrongInput
from shared.templates.template_rendering import render

_PLACEHOLDER: Final = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_USED: Final = re.compile(r"\{\{\s*([^{}\s|]+)\s*(?:\|[^}]+)?\}\}|\{%\s*(?:if|for)\s+([^{}\s]+)\s*.*?%\}")
"""What promptfoo takes for the use of a variable."""
_LOOP: Final = re.compile(r"\{%\s*for\s+(\w+)\s+in\s+(\w+)\s*%\}")
_ROOT: Final = re.compile(r"[A-Za-z_]\w*")
_ROUNDS: Final = 5
"""How often variables that name variables are filled in."""
_SPECIAL: Final = (bool, list, dict, type(None))
"""Values that both languages print differently."""
_OPEN: Final = re.compile(r"\{[{%]")
_CLOSE: Final = re.compile(r"[}%]\}")
_PLAIN: Final = re.compile(r"\{\{-?\s*(\w+)\s*-?\}\}")
_WORD: Final = re.compile(r"\w+")
_CODE: Final = re.compile(r"\bvars\b|^file://")
"""What shows that a text may be code which reads variables."""


@dataclass(frozen=True, slots=True)
class Combination:
    """One test with one value for each of its variables."""

    test: Test
    vars: Mapping[str, Any]
    """As templates have them: defaults included, variables in variables filled in."""
    own: Mapping[str, Any]
    """Those that are not the bench's."""


class Combinations:
    """The cases that tests stand for.

    Args:
        suite: the configuration.
        leave: lists variables that cannot be filled in, with place, name and reason.

    Raises:
        InputError: the cases are too many, or too long for a bench.
    """

    def __init__(self, suite: Suite, leave: Callable[[Place, str, str], None]) -> None:
        self._default, self._leave = suite.default, leave
        self._verify_size(suite.tests)
        self._printed = _only_printed(suite)
        values = suite.default.vars
        self.bench = {} if any(map(_is_special, values.values())) else self._as_printed(values)
        """Variables that all cases have alike."""

    def _as_printed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Variables as texts where prompts only print them, as promptfoo does."""
        return {
            key: printed(each) if key in self._printed and isinstance(each, _SPECIAL) else each
            for key, each in values.items()
        }

    def _verify_size(self, tests: Sequence[Test]) -> None:
        """Makes sure that the cases of all tests fit into a bench."""
        count, chars = CaseCount(), 0
        for test in tests:
            several = self._merged(test)[1]
            cases = prod(map(len, several.values()))
            count.add(cases, test.place)
            lengths = (len(str(each)) // len(several.get(key, "x")) for key, each in test.vars.items())
            chars += cases * (sum(lengths) + _chars(test.assertions))
            if chars > CONFIG_BYTES:
                what = f"more than {CONFIG_BYTES >> 20} MB of cases"
                raise test.place.error(what, "write fewer or shorter values")

    def _merged(self, test: Test) -> tuple[dict[str, Any], dict[str, Any]]:
        """The variables of a test with the defaults, and those of them that are lists."""
        merged = {**self._default.vars, **test.vars}
        is_fixed = read(WrittenTestOptions, {**self._default.options, **test.options}).disable_var_expansion
        several = {} if is_fixed else {key: value for key, value in merged.items() if _is_several(value)}
        return merged, several

    def of(self, test: Test) -> list[Combination]:
        """Returns the cases of a test: one for each combination of its lists."""
        merged, several = self._merged(test)
        return [
            self._combined(test, {**merged, **dict(zip(several, chosen, strict=True))})
            for chosen in product(*several.values())
        ]

    def _combined(self, test: Test, values: Mapping[str, Any]) -> Combination:
        """One case, with variables in variables filled in."""
        filled, shared = self._as_printed(self._filled(test, values)), self.bench
        own = {key: value for key, value in filled.items() if key not in shared or shared[key] != value}
        return Combination(test, filled, own)

    def _filled(self, test: Test, written: Mapping[str, Any]) -> dict[str, Any]:
        """Fills in variables that stand in variables."""
        values = {
            key: each.removesuffix("\n") if isinstance(each, str) else each for key, each in written.items()
        }
        for _ in range(_ROUNDS):
            for key, value in values.items():
                found = _PLACEHOLDER.search(value) if isinstance(value, str) else None
                if found and found[1] in values and found[1] != key:
                    values[key] = value.replace(found[0], printed(values[found[1]]), 1)
        named = KnownVariables([values])
        for key, value in values.items():
            if isinstance(value, str) and is_nunjucks(value) and not _names_unknown(value, values):
                try:
                    values[key] = render(to_jinja(value, named), values)
                except WrongInput as error:
                    self._leave(test.place.at("vars", key), f"variable {key}", error.args[0])
        return values


def _chars(assertions: Sequence[Assertion]) -> int:
    """How long what assertions compare with is."""
    return sum(len(str(each.value)) + _chars(each.inner) for each in assertions)


def _names_unknown(text: str, values: Mapping[str, Any]) -> bool:
    """Whether a text names variables that there are not, and is no template for promptfoo.

    >>> _names_unknown("{{ a | upper }} of {{b.c}}", {"a": 1}), _names_unknown("{{ a }}", {"a": 1})
    (True, False)
    >>> _names_unknown("{% for x in a %}{{ x }}{% endfor %}", {"a": [1]})
    False
    """
    names = {found[1] or found[2] for found in _USED.finditer(text)}
    for found in _LOOP.finditer(text):
        names = names - {found[1]} | {found[2]}
    roots = {root[0] for name in names if (root := _ROOT.match(name))}
    return not roots <= {"env", *values}


def printed(value: Any) -> str:
    """Returns a value as JavaScript prints it.

    >>> printed([1, [None, True]]), printed({"a": 1}), printed(None)
    ('1,,true', '[object Object]', '')
    """
    if isinstance(value, list):
        return ",".join(map(printed, value))
    if isinstance(value, dict):
        return "[object Object]"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _only_printed(suite: Suite) -> frozenset[str]:
    """The names of variables that are printed and nothing else: `{{ name }}`."""
    tests = (suite.default, *suite.tests)
    code = list(_texts([*((each.assertions, each.options) for each in tests), suite.providers]))
    is_read = any(each.is_code for each in suite.prompts) or any(
        script_of(each.id) for each in suite.providers
    )
    if is_read or any(text.startswith("file://") for text in code):
        return frozenset()
    words = {word for text in code if _CODE.search(text) for word in _WORD.findall(text)}
    plain = set[str]()
    for text in [*code, *_texts([suite.prompts, *(each.vars for each in tests)])]:
        for tag in _tags(text):
            if found := _PLAIN.fullmatch(tag):
                plain.add(found[1])
            else:
                words.update(_WORD.findall(tag))
    return frozenset(plain - words)


def _tags(text: str) -> Iterator[str]:
    """The tags of a template."""
    found = _OPEN.search(text)
    while found and (end := _CLOSE.search(text, found.end())):
        yield text[found.start() : end.end()]
        found = _OPEN.search(text, end.end())


def _texts(value: Any) -> Iterator[str]:
    """The texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)
    elif is_dataclass(value) and not isinstance(value, Place):
        for name in fields(value):
            yield from _texts(getattr(value, name.name))


def _is_several(value: Any) -> bool:
    """Whether a variable stands for several cases."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _is_special(value: Any) -> bool:
    """Whether a variable is not the same in all cases."""
    return _is_several(value) or (isinstance(value, str) and (is_nunjucks(value) or value.startswith(FILE)))
