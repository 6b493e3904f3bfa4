"""Translates Nunjucks templates, which promptfoo's are, into Jinja templates that render to the same text.

Both languages look alike and differ in what they print: a missing value and `null` print nothing, `true` in
small letters, a list its members with commas. What the variables are is therefore looked up in all cases.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from producer.convert.nunjucks_filters import FILTERS
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
    {
        *("if", "else", "elif", "elseif", "for", "in", "not", "and", "or", "is", "set", "true", "false"),
        *(
            "none",
            "null",
            "True",
            "False",
            "None",
            "defined",
            "undefined",
            "loop",
            "range",
            "cycler",
            "joiner",
        ),
        *("endif", "endfor", "endset", "block", "endblock", "filter", "endfilter", "macro", "endmacro"),
        *("call", "endcall", "caller", "raw", "asyncEach", "asyncAll", "endeach", "endall"),
    }
)
_SAME: Final[Mapping[str, str]] = {"===": "==", "!==": "!=", "null": "none", "elseif": "elif"}
_TAGS: Final[Mapping[str, str]] = {
    "asyncEach": "for",
    "asyncAll": "for",
    "endeach": "endfor",
    "endall": "endfor",
}
_UNKNOWN_TAGS: Final = frozenset({"include", "extends", "import", "from", "switch", "case"})
_LOOPS: Final = frozenset({"for", "asyncEach", "asyncAll"})
_NAMING: Final = frozenset({"set", "macro", "call", "block"})
"""Tags whose names are no variables of a case."""
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
_OF_DICTS: Final = frozenset(
    {"items", "keys", "values", "get", "pop", "copy", "update", "clear", "setdefault", "popitem", "fromkeys"}
)
"""Keys that Jinja takes for methods of mappings."""


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
            self._kinds[path] = frozenset(_kind(each) for each in self.values(path))
        return self._kinds[path]

    def values(self, path: tuple[str, ...]) -> Iterator[Any]:
        """Yields what stands at a path in each case; `MISSING` where nothing does."""
        return (_found(each, path) for each in self._cases)


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


def raw(text: str) -> str:
    """Returns a template that renders to a text, whatever is in it.

    >>> raw("{{ a"), raw("{% endraw %}")
    ('{% raw %}{{ a{% endraw %}', "{{ '{' }}% endraw %}")
    """
    return text.replace("{", "{{ '{' }}") if "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"


def to_jinja(text: str, variables: KnownVariables, note: Callable[[str], None] | None = None) -> str:
    """Translates a template.

    Args:
        text: a template.
        variables: what it may name.
        note: told of filters that give another text in Jinja; None: then it is refused.

    Raises:
        WrongInput: Jinja has no counterpart for something in it.

    >>> to_jinja("{{ n.length }} of {{ flag }}", KnownVariables([{"n": "abc", "flag": True}]))
    '{{ n | length }} of {{ flag | dump }}'
    >>> to_jinja("{{ a | dump }}", KnownVariables([{}]))
    "{{ a | dump if a is defined else '' }}"
    >>> to_jinja("{% if a === 1 && b %}", KnownVariables([]))
    Traceback (most recent call last):
    shared.errors.WrongInput: && is no operator of Nunjucks (write and)
    """
    if len(text) > MAX_INPUT_CHARS:
        raise WrongInput(f"it has more than {MAX_INPUT_CHARS:,} characters")
    if not _RAW.search(text) and any(map(_is_partial, _LINES.split(text))):
        return raw(text)
    parts, at, local = list[str](), 0, set[str]()
    while found := _OPEN.search(text, at):
        tag = _TAG.match(text, found.start())
        if tag is None:
            raise WrongInput(f"{found[0]} is not closed")
        parts += [text[at : tag.start()], _tag(tag, _Names(variables, local, note or _refuse))]
        at = tag.end()
    return "".join([*parts, text[at:]])


def _is_partial(line: str) -> bool:
    """Whether a tag begins in a line and does not end there."""
    return any(start in line and end not in line[line.rindex(start) + 2 :] for start, end in _MARKS)


def _refuse(problem: str) -> None:
    raise WrongInput(problem, "write the text itself")


class _Names(NamedTuple):
    """What a template may name."""

    variables: KnownVariables
    """Of the cases."""
    local: set[str]
    """That it sets itself."""
    note: Callable[[str], None]
    """Told of what is different in Jinja."""


def _tag(tag: re.Match[str], names: _Names) -> str:
    """Translates one tag; names that it sets are added to the local ones."""
    if tag.group("open") is None:
        return re.sub(r"(\{%-?\s*(?:end)?)verbatim(\s*-?%\})", r"\1raw\2", tag[0])
    code = _Code(_TOKEN.findall(tag.group("code")), names)
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

    def __init__(self, tokens: list[str], names: _Names) -> None:
        self._tokens = tokens
        self._variables, self._local, self._note = names

    def output(self) -> str:
        """What is printed."""
        solid = [at for at, token in enumerate(self._tokens) if not token.isspace()]
        if not solid:
            raise WrongInput("an empty {{ }}")
        path = self._path(solid[0])
        if path is not None and path.end > solid[-1]:
            return self._printed(path)
        if path is not None and self._used(path) != path.text and self._behind(path) == ["|", "dump"]:
            sure = self._sure(path)  # nothing is written of what there is not
            return f"{sure} | dump if {sure} is defined else ''"
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
        if word in _LOOPS and "in" in words:
            names = words[1 : words.index("in")]
            self._local.update(each for each in names if _NAME.fullmatch(each))
            text = "".join(self._translated(0))
            return self._pairs(text, words) if "," in names else text
        if word in _NAMING:
            ends = {"set": "=", "call": ")"}
            known = words[1 : words.index(ends[word])] if ends.get(word) in words else words[1:]
            self._local.update(each for each in known if _NAME.fullmatch(each))
        if word == "filter":  # {% filter upper %} is {{ … | upper }}
            at = self._tokens.index(word)
            self._tokens[at] = "|"
            return " filter " + "".join(self._translated(at)).lstrip("| ")
        return "".join(self._translated(0))

    def _pairs(self, text: str, words: Sequence[str]) -> str:
        """A loop over pairs: of a mapping, Jinja is asked for its items."""
        path = self._path(len(self._tokens) - len(self._behind_in()))
        whole = "".join(words[words.index("in") + 1 :])
        if path is None or path.text != whole:
            return text
        if path.steps[0] in self._local:
            items = f"({whole}.items() if {whole} is mapping else {whole})"
        elif "dict" in self._variables.kinds(path.steps):
            items = f"{whole}.items()"
        else:
            return text
        return f"{text.rstrip().removesuffix(whole)}{items} "

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
        """A filter, and the position behind what is translated of it."""
        end = at + 1
        while self._tokens[end : end + 1] and self._tokens[end].isspace():
            end += 1
        name, behind = self._next(end), self._behind_arguments(end + 1)
        space, given = "".join(self._tokens[at + 1 : end]), "".join(self._tokens[end + 2 : behind - 1])
        known = FILTERS.get(name)
        after = behind + self._tokens[behind : behind + 1][:1].count(" ")
        if known is None:
            self._note(f"the filter {name} has no counterpart")
            return "", after
        is_other = known.differs is None or any(map(known.differs, self._filtered(at)))
        if known.why and is_other:
            self._note(f"the filter {name}: {known.why}")
        if known.jinja is None:
            return "", after
        if name == "truncate" and (most := re.match(r"\d+", given)):
            return f"|{space}truncate({int(most[0]) + len('...')}{given[most.end() :]}, leeway=0)", behind
        if name == "indent" and is_other:
            return f"|{space}indent({given}{', ' if given else ''}blank=true)", behind
        if name == "round" and given[:1] in {"", "0"}:
            return f"|{space}round{f'({given})' if given else ''} | int", behind
        return f"|{space}{known.jinja}", end + 1

    def _filtered(self, at: int) -> Iterator[Any]:
        """The values of the variable that a filter stands behind."""
        before = at - 1
        while before >= 0 and self._tokens[before].isspace():
            before -= 1
        paths = map(self._path, range(before + 1))
        path = next((each for each in paths if each and each.end == before + 1), None)
        is_known = path is not None and not self._is_local(path)
        return self._variables.values(path.steps) if path and is_known else iter(["?"])

    def _behind_arguments(self, at: int) -> int:
        """The position behind arguments in brackets; the same where there are none."""
        if self._tokens[at : at + 1] != ["("]:
            return at
        depth = 0
        for end in range(at, len(self._tokens)):
            depth += {"(": 1, ")": -1}.get(self._tokens[end], 0)
            if depth == 0:
                return end + 1
        return len(self._tokens)

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
        rest = self._behind(path)
        if rest[:2] in (["|", "default"], ["|", "d"]) or rest[:1] == ["is"]:
            return path.text
        return f"({self._sure(path)} | default(''))"

    def _behind(self, path: _Path) -> list[str]:
        """The tokens behind a variable."""
        return [token for token in self._tokens[path.end :] if not token.isspace()]

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
        if self._is_local(path):
            return path.text
        kinds = self._variables.kinds(path.steps)
        if "file" in kinds:
            raise WrongInput(f"the file of {path.text} is written into a text")
        sure = self._sure(path)
        special = {kind: form for kind, form in _FORMS.items() if kind in kinds}
        if len(kinds) == len(special) == 1:
            return next(iter(special.values())).text.format(sure)
        chosen = [f"{form.text.format(sure)} if {form.test.format(sure)}" for form in special.values()]
        return " else ".join([*chosen, f"{sure} | default('')" if "missing" in kinds else sure])


class _Form(NamedTuple):
    """How JavaScript prints a kind of value."""

    text: str
    """In Jinja."""
    test: str
    """Whether a value is of the kind."""


_FORMS: Final[Mapping[str, _Form]] = {
    "bool": _Form("{} | dump", "{} is boolean"),
    "null": _Form("''", "{} is none"),
    "dict": _Form("'[object Object]'", "{} is mapping"),
    "list": _Form("{} | join(',')", "{0} is sequence and {0} is not string"),
}


def _refuse_operator(token: str, following: Sequence[str]) -> None:
    """Refuses what neither language has."""
    if token == "r/":  # noqa: S105 - a part of a template
        raise WrongInput("a regular expression in a template has no counterpart", "use a filter")
    if token in {"&", "|"} and following == [token]:
        word = "and" if token == "&" else "or"  # noqa: S105 - a part of a template
        raise WrongInput(f"{token}{token} is no operator of Nunjucks", f"write {word}")
