"""Tests the static policy: what it refuses, with line and rule, and the ordinary code that it must take."""

import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from shared.errors import InputError, ValidatorSecurityError
from worker.validation.policy import check_validator_source, first_problem

ORDINARY = {
    "the document's example": """
import ast
import re
def is_valid_python(output: str) -> tuple[bool, str]:
    code = output
    if "```python" in output:
        code = output.split("```python")[1].split("```")[0]
    try:
        ast.parse(code)
        return True, "Valid Python syntax"
    except SyntaxError as e:
        return False, f"Syntax error: {e}"
def contains_sql_keywords(output: str) -> bool:
    return any(kw in output.upper() for kw in ["SELECT", "FROM"])
""",
    "type and __name__": "def v(o): return isinstance(o, str), type(o).__name__ + o.__class__.__name__",
    "type as a value": "kind: type = str\ndef v(o): return all(map(type, o))",
    "literal getattr": "def v(o): return getattr(o, 'upper', None) is not None and hasattr(o, 'x')",
    "getattr of a module": "import re\ndef v(o): return bool(getattr(re, 'search')('x', o))",
    "re.compile": "import re\nWORD = re.compile(r'\\w+')\ndef v(o): return bool(WORD.search(o))",
    "from re import compile under another name": (
        "from re import compile as make\ndef v(o): return bool(make(o))"
    ),
    "collections.abc": "import collections.abc\ndef v(o): return isinstance(o, collections.abc.Sequence)",
    "from collections.abc": "from collections.abc import Sequence\ndef v(o): return isinstance(o, Sequence)",
    "a parameter named input": "def v(input): return len(input) > 3 and any(x for x in input)",
    "a parameter of an enclosing function": (
        "def v(input):\n    def inner(): return input\n    return bool(inner())"
    ),
    "a lambda's parameter": "v = lambda input: len(input) > 3",
    "own variables": "def v(o):\n    vars = o.split()\n    open = o.count('(')\n    return open == len(vars)",
    "comprehension variables": "def v(o): return [input for input in o] != []",
    "a parameter named like a module": (
        "import string\ndef v(string): return bool(string) and len(string) > 1"
    ),
    "json errors": (
        "import json\ndef v(o):\n    try: json.loads(o)\n"
        "    except json.decoder.JSONDecodeError: return False\n"
        "    except json.JSONDecodeError as e: return False, e.msg\n    return True"
    ),
    "formats": "T = '{} of {n:>{w}}'\ndef v(o): return True, '{0.real}'.format(1) + T.format(1, n=2, w=3)",
    "formats of many": "def v(o): return bool(list(map('{}'.format, o)))",
    "classes": (
        "class Rule:\n    __slots__ = ('word',)\n    def __init__(self, word): self.word = word\n"
        "    def __call__(self, o): return self.word in o\n"
        "class Long(Rule):\n    def __init__(self): super().__init__('x')\nv = Long()"
    ),
    "special names in texts": "def v(o): return '__globals__' in o and 'eval(' not in o and 'import os' in o",
    "keys": "import json\ndef v(o): return json.loads(o)['eval'] == {'open': 1}['open']",
    "typing": (
        "from typing import NamedTuple\n"
        "class P(NamedTuple):\n    x: int\ndef v(o): return P(1)._replace(x=2).x == 2"
    ),
    "functools": (
        "import functools\n"
        "@functools.lru_cache(maxsize=None)\ndef v(o): return functools.reduce(max, o) > 'a'"
    ),
    "a decorator": (
        "import functools\n"
        "def twice(f):\n    @functools.wraps(f)\n    def g(o): return f(o) and f(o)\n    return g\n"
        "@twice\ndef v(o): return bool(o)"
    ),
    "fields that are read": (
        "import ast\nfrom collections import namedtuple\nP = namedtuple('P', 'a b')\n"
        "def v(o): return P._fields == ('a', 'b') and ast.Name._fields[0] == 'id'"
    ),
    "an import that may fail": (
        "try:\n    from typing import not_yet_there\nexcept ImportError:\n    not_yet_there = str\n"
        "def v(o): return not_yet_there(o) == o"
    ),
    "operator": (
        "from operator import attrgetter, itemgetter\n"
        "def v(o): return attrgetter('real')(1) == itemgetter(0)([1])"
    ),
    "datetime": "import datetime\ndef v(o): return datetime.datetime.strptime(o, '%Y').year > 0",
    "itertools, math, string": (
        "import itertools, math, string\ndef v(o): return math.isnan(1) or string.digits in o"
    ),
    "future": "from __future__ import annotations\ndef v(o: str) -> bool: return True",
    "match": (
        "def v(o):\n"
        "    match o:\n        case str(real=1): return True\n        case input: return bool(input)"
    ),
    "methods named like builtins": (
        "class C:\n    def open(self): return 1\n    eval = 2\ndef v(o): return C().open() == 1"
    ),
    "singledispatch": (
        "from __future__ import annotations\nimport functools\n"
        "@functools.singledispatch\ndef v(o): return False\n"
        "@v.register\ndef of_text(o: str): return True"
    ),
    "singledispatchmethod": (
        "from functools import singledispatchmethod\n"
        "class C:\n    @singledispatchmethod\n    def m(self, o): return False\n"
        "    @m.register(str)\n    def _(self, o): return True\n"
        "def v(o): return C().m(o)"
    ),
    "a protocol": (
        "from typing import Protocol, runtime_checkable\n"
        "@runtime_checkable\nclass P(Protocol):\n    def upper(self): ...\n"
        "def v(o): return isinstance(o, P)"
    ),
    "copies and counts": (
        "import collections\n"
        "def v(o):\n    copied = collections.UserDict(a=1).copy()\n"
        "    return copied == {'a': 1} and bool(collections.Counter(o).most_common(1))"
    ),
    "a tree's docstring": 'import ast\ndef v(o): return ast.get_docstring(ast.parse(\'"""a"""\')) == \'a\'',
    "a tree as text": "import ast\ndef v(o): return ast.unparse(ast.parse('f\"{a}\"')) != ''",
    "named characters": "import re\ndef v(o): return bool(re.search('\\\\N{BULLET}|x', o))",
    "encodings": "def v(o): return all(o.encode(c) for c in ('cp437', 'utf-16-le', 'latin-1', 'idna'))",
    "a date": (
        "import datetime\ndef v(o): return datetime.datetime.strptime('2026', '%Y').strftime('%A') != ''"
    ),
    "a main guard": "def v(o): return True\nif __name__ == '__main__':\n    print(v('x'))",
    "globals of its own": "N = 0\ndef v(o):\n    global N\n    N += 1\n    return N > 0",
}

REFUSED = {
    "import os": "imports",
    "import os.path as p": "imports",
    "from subprocess import run": "imports",
    "from . import x": "imports",
    "from .re import x": "imports",
    "from re import *": "imports",
    "def v(o):\n    import socket": "imports",
    "import json.tool": "imports",
    "import re.enum": "imports",
    "eval('1')": "blocked name",
    "exec('1')": "blocked name",
    "compile('1', '', 'exec')": "blocked name",
    "open('/etc/passwd')": "blocked name",
    "__import__('os')": "blocked name",
    "input()": "blocked name",
    "memoryview(b'')": "blocked name",
    "breakpoint()": "blocked name",
    "globals()": "blocked name",
    "locals()": "blocked name",
    "vars()": "blocked name",
    "f = open": "blocked name",
    "def v(o, _o=open): return _o(o)": "blocked name",
    "def v(open=open): return open": "blocked name",
    "[eval][0]('1')": "blocked name",
    "list(map(eval, ['1']))": "blocked name",
    "@eval\ndef v(o): return True": "blocked name",
    "(f := exec)('1')": "blocked name",
    "__builtins__": "blocked name",
    "__builtins__['eval']": "blocked name",
    "__loader__.load_module('os')": "blocked name",
    "__spec__.loader": "blocked name",
    "if 0: open = 1\nopen('x')": "blocked name",
    "class A:\n    if 0: open = 1\n    f = open": "blocked name",
    "def v(o):\n    open = 1\n    class A:\n        if 0: open = 2\n        f = open": "blocked name",
    "def v(o):\n    open = 1\n    def g():\n        global open\n        return open": "blocked name",
    "def v(o):\n    return [open for open in [open]]": "blocked name",
    "def v(o):\n    def g(x=eval): eval = 1": "blocked name",
    "lambda x=eval: x": "blocked name",
    "def f(x: eval('1')): pass": "blocked name",
    "f'{eval}'": "blocked name",
    "().__class__.__base__.__subclasses__()": "blocked attribute",
    "(lambda: 0).__code__": "blocked attribute",
    "def f(): pass\nf.__globals__": "blocked attribute",
    "def f(): pass\nf.__code__ = 1": "blocked attribute",
    "print.__self__": "blocked attribute",
    "print.__builtins__": "blocked attribute",
    "''.__getattribute__('x')": "blocked attribute",
    "object.__dict__": "blocked attribute",
    "[].__reduce_ex__(2)": "blocked attribute",
    "type(1).mro()": "blocked attribute",
    "(x for x in ()).gi_frame.f_back": "blocked attribute",
    "def v(o):\n    try: 1/0\n    except Exception as e: e.__traceback__.tb_frame": "blocked attribute",
    "async def c(): pass\nc().cr_frame": "blocked attribute",
    "getattr(print, '__self__')": "blocked attribute",
    "getattr((x for x in ()), 'gi_frame')": "blocked attribute",
    "match 1:\n    case object(__subclasses__=x): pass": "blocked attribute",
    "{}['__builtins__']": "blocked attribute",
    "import operator\noperator.attrgetter('x.__globals__')": "blocked attribute",
    "from operator import methodcaller as m\nm('__subclasses__')": "blocked attribute",
    "getattr(object, '__sub' + 'classes__')": "attributes named at run time",
    "getattr(*[1, 2])": "attributes named at run time",
    "g = getattr": "attributes named at run time",
    "setattr(print, 'x' * 2, 1)": "attributes named at run time",
    "from functools import partial\npartial(getattr, object)": "attributes named at run time",
    "import operator\noperator.attrgetter('__sub' + 'classes__')": "attributes named at run time",
    "import operator\nf = operator.attrgetter": "attributes named at run time",
    "import operator as o\nlist(map(o.methodcaller, ['x']))": "attributes named at run time",
    "import re\nre.enum.sys": "modules inside modules",
    "import typing\ntyping.sys": "modules inside modules",
    "import typing as t\nt.sys.modules": "modules inside modules",
    "import datetime\ndatetime.sys": "modules inside modules",
    "import collections\ncollections._sys": "modules inside modules",
    "import string\nstring._re": "modules inside modules",
    "import json\njson.codecs.open('x')": "modules inside modules",
    "import json\njson.decoder.scanner": "modules inside modules",
    "from typing import sys": "modules inside modules",
    "from collections import _sys": "modules inside modules",
    "from json import codecs as c": "modules inside modules",
    "import ast\nast.sys": "modules inside modules",
    "import re\nx = re": "modules inside modules",
    "import re\n[re][0].enum": "modules inside modules",
    "import re\ngetattr(re, 'enum')": "modules inside modules",
    "import re\nre.search = print": "modules inside modules",
    "import re\nsetattr(re, 'search', print)": "modules inside modules",
    "from json import JSONDecoder\nJSONDecoder.decode = print": "modules inside modules",
    "import json\njson.JSONDecoder.decode = print": "modules inside modules",
    "def v(o):\n    import re\n    return re.enum": "modules inside modules",
    "import typing\ntyping.get_type_hints(print)": "modules inside modules",
    "from typing import ForwardRef": "modules inside modules",
    "import string\nstring.Formatter().get_field('0.x', [1], {})": "modules inside modules",
    "'{0.__class__.__init__.__globals__}'.format(1)": "formats",
    "'{0:{0.__globals__}}'.format(1)": "formats",
    "('{0.__cl' + 'ass__}').format(1)": "formats",
    "x = '{0.a' + '}'\nx.format(1)": "formats",
    "def v(o): return o.format(1)": "formats",
    "str.format('{0.x}', 1)": "formats",
    "'{x.gi_frame}'.format_map({})": "formats",
    "match '{0.__globals__}':\n    case str(format=f): f(print)": "formats",
    "match 'x':\n    case str(format_map=f): pass": "formats",
    "class A:\n    _fields = ('__globals__',)": "attributes named at run time",
    "class A:\n    @property\n    def _fields(self): return ['__globals__']": "attributes named at run time",
    "def v(o):\n    def _fields(): pass": "attributes named at run time",
    "import ast\nn = ast.AST()\nn._fields = ('__globals__',)": "attributes named at run time",
    "import ast\nast.AST(_fields=('__globals__',))": "attributes named at run time",
    "setattr(print, '_attributes', ())": "attributes named at run time",
    "import functools\nfunctools.update_wrapper(1, print, ('__globals__',))": "attributes named at run time",
    "import functools as f\nf.update_wrapper(1, print, assigned='x')": "attributes named at run time",
    "from functools import wraps\nwraps(print, updated=('__globals__',))": "attributes named at run time",
    "from functools import wraps\nwraps(*[print, ['__globals__']])": "attributes named at run time",
    "from functools import update_wrapper as u\nlist(map(u, [1], [2], [3]))": "attributes named at run time",
    "from re import serch": "imports",
    "type('X', (), {})": "classes made by type()",
    "type(*['X', (), {}])": "classes made by type()",
    "-" * 100_000 + "1": "size",
    "#" * (1 << 21): "size",
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_validators_are_accepted(name: str) -> None:
    """What an ordinary validator uses is not refused, and is Python."""
    compile(ORDINARY[name], name, "exec")
    assert first_problem(ORDINARY[name]) is None


@pytest.mark.parametrize("source", REFUSED, ids=lambda source: source[:40])
def test_what_validators_may_not_do_is_refused(source: str) -> None:
    """What the document blocks, and each known way around it, breaks the rule that it should."""
    problem = first_problem(source)
    assert problem is not None
    assert problem.rule == REFUSED[source], problem


def test_the_message_names_place_and_rule() -> None:
    """A refusal says file, line, column, what it was and the rule, and travels between processes."""
    with pytest.raises(ValidatorSecurityError) as caught:
        check_validator_source("import re\n\nx = 1; import os\n", name="checks.py")
    error = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes, made in this line
    assert str(error) == "checks.py: line 3, column 8: import of os is not allowed (rule: imports)"
    assert isinstance(error, InputError)
    assert error.exit_code == 2
    assert error.hint


@pytest.mark.parametrize("source", ["def v(o:", "x = '\0'", "\ud800"])
def test_what_is_no_python_is_a_syntax_error(source: str) -> None:
    """A file that cannot be read is a mistake, not an attack."""
    with pytest.raises(SyntaxError):
        check_validator_source(source)


def test_nothing_is_executed() -> None:
    """Code at the top of a file does not run while the file is checked."""
    check_validator_source("1 / 0\nwhile True: pass")


def test_files_are_read_by_several_threads() -> None:
    """Threads at different depths read files, also when a collection stops one inside a syntax tree."""
    source, slowed, never = "def v(o):\n" + "    o = (o + 'a')\n" * 20, set[int](), threading.Event()

    def let_others_go_on(*_: Any) -> None:
        if threading.get_ident() in slowed:
            never.wait(0.003)  # gives up the interpreter; without it a tree is made in one go

    def read(*, depth: int) -> object:
        if depth:
            return read(depth=depth - 1)
        slowed.add(threading.get_ident())
        return first_problem(source)

    threshold = gc.get_threshold()
    gc.callbacks.append(let_others_go_on)
    gc.set_threshold(100)
    try:
        with ThreadPoolExecutor(1) as pool:
            deep = pool.submit(read, depth=60)
            while not deep.done():
                assert first_problem(source) is None
            assert deep.result() is None
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(let_others_go_on)
