"""Translates Nunjucks templates, which promptfoo's are, into Jinja templates that render to the same text.

Both languages look alike and differ in what they print: a missing value and `null` print nothing, `true` in
small letters, a list its members with commas. What the variables are is therefore looked up in all cases.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from shared.contracts.case_vocabulary import MAX_INPUT_CHARS
from shared.errors import WrongInput

MISSING: Final = object()
"""The value of a variable that a case does not have."""
_MARKS: Final = ("{{", "}"), ("{%", "%"), ("{#", "#")
"""How tags begin, and what has to follow on their line: else promptfoo sends the text as it is."""
_LINES: Final = re.compile(r"[\n\r\u2028\u2029]")
_OPEN: Final = re.compile(r"\{[{%#]")
_RAW: Final = re.compile(r"\{%-?\s*raw\s*-?%\}")
_TAG: Final = re.compile(
    r"\{#.*?#\}|\{%-?\s*(?:raw|verbatim)\s*-?%\}.*?\{%-?\s*end(?:raw|verbatim)\s*-?%\}"
    r"|(?P<open>\{\{-?|\{%-?)(?P<code>(?:\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|[^\"'])*?)(?P<close>-?\}\}|-?%\})",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    r"\s+|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\d+(?:\.\d+)?|[A-Za-z_$][\w$]*|===|!==|==|!=|<=|>=|//|\*\*|r/|.",
    re.DOTALL,
)
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_WORDS: Final = frozenset(
    {"if", "else", "elif", "elseif", "for", "in", "not", "and", "or", "is", "set", "true", "false", "none"}
    | {
        "null",
        "endif",
        "endfor",
        "endset",
        "loop",
        "block",
        "filter",
        "macro",
        "call",
        "defined",
        "undefined",
    }
    | {
        "True",
        "False",
        "None",
        "asyncEach",
        "asyncAll",
        "endeach",
        "endall",
        "raw",
        "range",
        "cycler",
        "joiner",
    }
)
_SAME: Final[Mapping[str, str]] = {"===": "==", "!==": "!=", "null": "none", "elseif": "elif"}
_TAGS: Final[Mapping[str, str]] = {
    "asyncEach": "for",
    "asyncAll": "for",
    "endeach": "endfor",
    "endall": "endfor",
}
_UNKNOWN_TAGS: Final = frozenset({"include", "extends", "import", "from", "switch", "case", "block", "call"})
_COMPARISONS: Final = frozenset({"==", "===", "!=", "!==", "<", ">", "<=", ">=", "not", "is", "in"})
"""What makes an expression true or false, which both languages print differently."""
_CHOICES: Final = frozenset({"if", "and", "or", "|", "(", "["})
_METHODS: Final[Mapping[str, str]] = {
    "toUpperCase": "upper",
    "toLowerCase": "lower",
    "trim": "trim",
    "toString": "string",
}
"""Methods of JavaScript's texts without arguments, and the filters that do the same."""
_PYTHON_METHODS: Final[Mapping[str, str]] = {
    "startsWith": "startswith",
    "endsWith": "endswith",
    "split": "split",
}
_STRINGS: Final[Mapping[str, str]] = {"safe": "string"}
"""Filters that are called otherwise in Jinja."""
_OF_DICTS: Final = frozenset(
    {"items", "keys", "values", "get", "pop", "copy", "update", "clear", "setdefault", "popitem", "fromkeys"}
)
"""Keys that Jinja takes for methods of mappings."""
_DIFFERENT: Final = frozenset({"truncate", "escape", "e", "forceescape", "nl2br", "urlize", "load", "random"})
"""Filters that do something else in Jinja, or are not there."""
_FILTERS: Final = frozenset(
    {"abs", "batch", "capitalize", "center", "d", "default", "dictsort", "dump", "first", "float", "groupby"}
    | {
        "indent",
        "int",
        "join",
        "last",
        "length",
        "list",
        "lower",
        "reject",
        "rejectattr",
        "replace",
        "reverse",
    }
    | {
        "round",
        "select",
        "selectattr",
        "slice",
        "sort",
        "string",
        "striptags",
        "sum",
        "title",
        "trim",
        "upper",
    }
    | {"urlencode", "wordcount", "safe"}
)


class KnownVariables:
    """The values of variables in all cases that a template is rendered for.

    Args:
        cases: the variables of each.
    """

    def __init__(self, cases: Sequence[Mapping[str, Any]]) -> None:
        self._cases = cases
        self._kinds = dict[tuple[str, ...], frozenset[str]]()

    def kinds(self, path: tuple[str, ...]) -> frozenset[str]:
        """Returns what stands at a path: `missing`, `null`, `bool`, `list`, `dict`, `file`, `text`."""
        if path not in self._kinds:
            self._kinds[path] = frozenset(_kind(_found(each, path)) for each in self._cases)
        return self._kinds[path]


def _found(value: Any, path: Sequence[str]) -> Any:
    """Follows a path; `MISSING` where it ends early."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else MISSING
        else:
            return MISSING
    return value


def _kind(value: Any) -> str:
    """Names what a value is in a template."""
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, str) and value.startswith("file://"):
        return "file"
    names = {bool: "bool", list: "list", dict: "dict"}
    return names.get(type(value), "text")


def is_nunjucks(text: str) -> bool:
    """Returns whether a text has anything to render."""
    return "{{" in text or "{%" in text or "{#" in text


def to_jinja(text: str, variables: KnownVariables) -> str:
    """Translates a template.

    Args:
        text: a template.
        variables: what it may name.

    Raises:
        WrongInput: Jinja has no counterpart for something in it.

    >>> to_jinja("{{ n.length }} of {{ flag }}", KnownVariables([{"n": "abc", "flag": True}]))
    '{{ n | length }} of {{ flag | dump }}'
    >>> to_jinja("{% if a === 1 && b %}", KnownVariables([]))
    Traceback (most recent call last):
    shared.errors.WrongInput: && is no operator of Nunjucks (write and)
    """
    if len(text) > MAX_INPUT_CHARS:
        raise WrongInput(f"it has more than {MAX_INPUT_CHARS:,} characters")
    if not _RAW.search(text) and any(map(_is_partial, _LINES.split(text))):
        return f"{{% raw %}}{text}{{% endraw %}}"
    parts, at, local = list[str](), 0, set[str]()
    while found := _OPEN.search(text, at):
        tag = _TAG.match(text, found.start())
        if tag is None:
            raise WrongInput(f"{found[0]} is not closed")
        parts += [text[at : tag.start()], _tag(tag, variables, local)]
        at = tag.end()
    return "".join([*parts, text[at:]])


def _is_partial(line: str) -> bool:
    """Whether a tag begins in a line and does not end there."""
    return any(start in line and end not in line[line.rindex(start) + 2 :] for start, end in _MARKS)


def _tag(tag: re.Match[str], variables: KnownVariables, local: set[str]) -> str:
    """Translates one tag; names that it sets are added to the local ones."""
    if tag.group("open") is None:
        return re.sub(r"(\{%-?\s*(?:end)?)verbatim(\s*-?%\})", r"\1raw\2", tag[0])
    code = _Code(_TOKEN.findall(tag.group("code")), variables, local)
    if tag.group("open").startswith("{{"):
        inner = code.output()
        lead = re.match(r"\s*", tag.group("code"))
        pad = lead[0] if lead and not tag.group("code").isspace() else " "
        end = re.search(r"\s*$", tag.group("code"))
        return f"{tag.group('open')}{pad}{inner}{end[0] if end else ''}{tag.group('close')}"
    return f"{tag.group('open')}{code.statement()}{tag.group('close')}"


class _Path(NamedTuple):
    """A variable with what is taken from it: `user.name`."""

    steps: tuple[str, ...]
    text: str
    end: int
    """Position behind it among the tokens."""


class _Code:
    """The tokens of a tag."""

    def __init__(self, tokens: Sequence[str], variables: KnownVariables, local: set[str]) -> None:
        self._tokens = tokens
        self._variables = variables
        self._local = local

    def output(self) -> str:
        """What is printed."""
        solid = [at for at, token in enumerate(self._tokens) if not token.isspace()]
        if not solid:
            raise WrongInput("an empty {{ }}")
        path = self._path(solid[0])
        if path is not None and path.end > solid[-1]:
            return self._printed(path)
        text = "".join(self._translated(0)).strip()
        if _COMPARISONS.intersection(self._tokens) and not _CHOICES.intersection(self._tokens):
            return f"({text}) | dump"
        if "if" in self._tokens and "else" not in self._tokens:
            return f"{text} else ''"
        return text

    def statement(self) -> str:
        """What is done."""
        words = [token for token in self._tokens if not token.isspace()]
        word = words[0] if words else ""
        if word in _UNKNOWN_TAGS:
            raise WrongInput(f"{{% {word} %}} has no counterpart", "write the text itself")
        if word in {"for", "asyncEach", "asyncAll"} and "in" in words:
            names = words[1 : words.index("in")]
            self._local.update(each for each in names if _NAME.fullmatch(each))
            text = "".join(self._translated(0))
            return self._pairs(text, words) if "," in names else text
        if word == "set":
            self._local.update(each for each in words[1:2])
        return "".join(self._translated(0))

    def _pairs(self, text: str, words: Sequence[str]) -> str:
        """A loop over pairs: of a mapping, Jinja is asked for its items."""
        path = self._path(len(self._tokens) - len(self._behind_in()))
        whole = "".join(words[words.index("in") + 1 :])
        if path is not None and path.text == whole and "dict" in self._variables.kinds(path.steps):
            head, _, tail = text.rstrip().rpartition(path.text)
            return f"{head}{path.text}.items(){tail} "
        return text

    def _behind_in(self) -> Sequence[str]:
        """The tokens behind `in`."""
        at = self._tokens.index("in") + 1
        while at < len(self._tokens) and self._tokens[at].isspace():
            at += 1
        return self._tokens[at:]

    def _translated(self, start: int) -> Iterator[str]:
        """The tokens in Jinja's words."""
        at = start
        while at < len(self._tokens):
            word = self._tokens[at]
            _refuse_operator(word, self._tokens[at + 1 : at + 2])
            path = self._path(at)
            if word == "|":
                text, at = self._filter(at)
            elif path is None or (len(path.steps) == 1 and self._next(at + 1) == "("):
                text, at = _TAGS.get(word, _SAME.get(word, word)), at + 1
            else:
                methods, at = self._methods(path.end)
                text = self._used(path) + methods
            yield text

    def _next(self, at: int) -> str:
        """The next token that is no white space."""
        return next((token for token in self._tokens[at:] if not token.isspace()), "")

    def _filter(self, at: int) -> tuple[str, int]:
        """A filter, and the position behind its name."""
        space = ""
        while self._tokens[at + 1 : at + 2] and self._tokens[at + 1].isspace():
            at, space = at + 1, f"{space}{self._tokens[at + 1]}"
        name = self._next(at + 1)
        if name not in _FILTERS:
            what = "does something else in Jinja" if name in _DIFFERENT else "has no counterpart"
            raise WrongInput(f"the filter {name} {what}", "write the text itself")
        is_bare = name == "round" and self._next(at + 2) != "("
        return f"|{space}{_STRINGS.get(name, name)}{' | int' if is_bare else ''}", at + 2

    def _path(self, at: int) -> _Path | None:
        """The variable that begins at a token; None where none does."""
        tokens = self._tokens
        first = tokens[at] if at < len(tokens) else ""
        if not _NAME.fullmatch(first) or first in _WORDS or self._is_attribute(at):
            return None
        if self._next(at + 1) == "=" and tokens[at + 1 : at + 2] != ["=="]:
            return None  # the name of an argument, or what `set` sets
        steps, text, at = [first], first, at + 1
        while at < len(tokens):
            name = tokens[at + 1] if at + 1 < len(tokens) else ""
            if tokens[at] == "." and _NAME.fullmatch(name):
                if tokens[at + 2 : at + 3] == ["("] or name == "length":
                    break
                steps.append(name)
                text += f"['{name}']" if name in _OF_DICTS else f".{name}"
                at += 2
            elif (
                tokens[at] == "["
                and tokens[at + 2 : at + 3] == ["]"]
                and name[:1].isdigit() | (name[:1] in "'\"")
            ):
                steps.append(name.strip("'\""))
                text += f"[{name}]"
                at += 3
            else:
                break
        return _Path(tuple(steps), text, at)

    def _is_attribute(self, at: int) -> bool:
        """Whether a name is that of an attribute, a test or a filter."""
        before = next((token for token in reversed(self._tokens[:at]) if not token.isspace()), "")
        return before in {".", "|", "is"}

    def _methods(self, at: int) -> tuple[str, int]:
        """Methods of JavaScript behind a variable, and the position behind them."""
        tokens, text = self._tokens, ""
        while tokens[at : at + 1] == ["."]:
            name = tokens[at + 1] if at + 1 < len(tokens) else ""
            is_empty = tokens[at + 2 : at + 4] == ["(", ")"]
            if name == "length":
                text, at = f"{text} | length", at + 2
            elif name in _METHODS and is_empty:
                text, at = f"{text} | {_METHODS[name]}", at + 4
            elif name == "join":
                return f"{text} | join", at + 2
            elif name in _PYTHON_METHODS:
                return f"{text}.{_PYTHON_METHODS[name]}", at + 2
            else:
                raise WrongInput(f"the method {name} of JavaScript has no counterpart", "use a filter")
        return text, at

    def _is_local(self, path: _Path) -> bool:
        return path.steps[0] in self._local

    def _used(self, path: _Path) -> str:
        """A variable within an expression: a missing one is empty."""
        if self._is_local(path) or "missing" not in self._variables.kinds(path.steps):
            return path.text
        rest = [token for token in self._tokens[path.end :] if not token.isspace()]
        if rest[:2] in (["|", "default"], ["|", "d"]) or rest[:1] == ["is"]:
            return path.text
        return f"({self._sure(path)} | default(''))"

    def _sure(self, path: _Path) -> str:
        """A variable of which only the last step may be missing."""
        kinds = (self._variables.kinds(path.steps[:at]) for at in range(1, len(path.steps)))
        gaps = {at for at, found in enumerate(kinds, 1) if "missing" in found}
        if not gaps:
            return path.text
        text = path.steps[0]
        for at, step in enumerate(path.steps[1:], 1):
            text = f"({text} | default({{}})).{step}" if at in gaps else f"{text}.{step}"
        return text

    def _printed(self, path: _Path) -> str:
        """A variable that is printed by itself."""
        text = path.text
        if self._is_local(path):
            return text
        kinds = self._variables.kinds(path.steps)
        if "file" in kinds:
            raise WrongInput(f"the file of {path.text} is written into a text")
        if "missing" in kinds:
            text = f"{self._sure(path)} | default('')"
        forms = {
            "bool": (f"{text} | dump", "boolean"),
            "null": ("''", "none"),
            "list": (f"{text} | join(',')", "sequence"),
            "dict": ("'[object Object]'", "mapping"),
        }
        special = [each for each in ("bool", "null", "dict", "list") if each in kinds]
        if kinds - {"missing"} == set(special) and len(special) == 1:
            return forms[special[0]][0] if "missing" not in kinds else self._chosen(text, forms, special)
        if special == ["null"]:
            return f"{path.text} | default('', true)" if kinds <= {"null", "text", "missing"} else text
        return self._chosen(text, forms, special)

    def _chosen(self, text: str, forms: Mapping[str, tuple[str, str]], special: Sequence[str]) -> str:
        """An expression that prints each kind in its way."""
        for kind in special:
            form, test = forms[kind]
            is_text = " and %s is not string" if kind == "list" else ""
            plain = text.split(" | ", maxsplit=1)[0]
            tested = f"({text}) is {test}" if " | " in text else f"{plain} is {test}"
            also = is_text % (f"({text})" if " | " in text else plain) if is_text else ""
            text = f"{form} if {tested}{also} else {text}"
        return text


def _refuse_operator(token: str, following: Sequence[str]) -> None:
    """Refuses what neither language has."""
    if token == "r/":  # noqa: S105 - a part of a template
        raise WrongInput("a regular expression in a template has no counterpart", "use a filter")
    if token in {"&", "|"} and following == [token]:
        word = "and" if token == "&" else "or"  # noqa: S105 - a part of a template
        raise WrongInput(f"{token}{token} is no operator of Nunjucks", f"write {word}")
