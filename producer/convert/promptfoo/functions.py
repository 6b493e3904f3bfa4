"""Takes code over: Python as functions of a validators file, transforms of answers."""

import ast
import re
from dataclasses import dataclass, field
from textwrap import indent
from typing import Any, Final

from producer.cases.bench_files import VALIDATORS_BYTES, TextFile, check_validators, read_beside
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.providers import ScriptPath, script_of
from producer.convert.report import ForeignFile
from shared.contracts.case_config import ModelConfig
from shared.errors import UsageError, WrongInput

_RETURN: Final = re.compile(r"return\b\s*(.*?);*")
_NEEDED: Final = re.compile(
    r"\brequire\(\s*['\"]([^'\"]+)|^\s*import\s(?:[^;'\"]*\sfrom\s)?\s*['\"]([^'\"]+)|\b(process|Buffer)\."
    r"|\b(fetch|import|setTimeout)\(|\b(__dirname)\b",
    re.MULTILINE,
)
"""What a file of JavaScript takes from others, and from node."""
_JAVASCRIPT: Final = re.compile(r"\.[cm]?js(:|$)")
_GRADED: Final = '''

def _graded(result, threshold):
    """Reads a result as promptfoo does: a truth value, a number, or a mapping."""
    if isinstance(result, dict):
        passed = bool(result.get("pass", result.get("pass_", False)))
        score = result.get("score", 1.0 if passed else 0.0)
        return passed and (threshold is None or score >= threshold), str(result.get("reason", ""))
    if isinstance(result, bool):
        return result, ""
    return (result > 0 if threshold is None else result >= threshold), f"score {result}"
'''


@dataclass(slots=True)
class Functions:
    """The functions of a validators file.

    Args:
        file: the configuration that names files of code; None: none can be read.
    """

    file: ForeignFile | None = None
    _names: dict[tuple[str, str, float | None], str] = field(default_factory=dict)
    _sources: dict[str, str] = field(default_factory=dict)
    _defined: set[str] = field(default_factory=set)
    _wrappers: list[str] = field(default_factory=list)
    code: dict[str, ModelConfig] = field(default_factory=dict)
    """Files of code that check, or grade, in processes of their own, by the names of their models."""

    def of_text(self, text: str, threshold: float | None) -> str:
        """Returns the name of a function that is an expression, or a body with `return`.

        Raises:
            WrongInput: it is no Python, or does what validators may not do.
        """
        code = text.strip("\n").rstrip()
        body = code if "\n" in text else f"return {code.strip()}"
        inner = f"def _answer(output, context):\n{indent(body, '    ')}\n"
        return self._named(
            ("", body, threshold), f"{indent(inner, '    ')}    result = _answer(output, context)"
        )

    def of_file(self, path: str, function: str, threshold: float | None) -> str:
        """Returns the name of a function that calls that of a file.

        Raises:
            WrongInput: the file does what validators may not do, or defines names of another file.
        """
        self.named_in(path, function)
        key = (path, function, threshold)
        return self._named(key, f"    result = {function}(output, context)")

    def named_in(self, path: str, function: str) -> str:
        """Returns the name of a function of a file, which is taken over as it is.

        Raises:
            WrongInput: as `of_file`.
        """
        if path not in self._sources:
            self._add(path)
        if function not in _names(self._sources[path]):
            raise WrongInput(f"{path} has no function {function}")
        return function

    def hosted(self, script: ScriptPath) -> dict[str, Any]:
        """Returns a check that asks a function of a file, which runs with `--allow-code`.

        Raises:
            WrongInput: there is no such file.
        """
        path, _, function = script.path.partition(":")
        if self.file is not None:
            self._read(path)
        written = {script.language: path, "role": "check"}
        self.code.setdefault(path, ModelConfig.model_validate(written))
        return {"verdict": function or None, "model": path}

    def script(self, written: str) -> dict[str, str]:
        """Returns the file of JavaScript, and the function in it, that a text names.

        Raises:
            WrongInput: it is no JavaScript, or needs other files.
        """
        script = script_of(written)
        if script is None or not _JAVASCRIPT.search(script.path):
            raise WrongInput("its file is no JavaScript that runs by itself")
        path, _, function = script.path.partition(":")
        if self.file is not None:
            needed = _NEEDED.search(self._read(path))
            if needed:
                name = next(filter(None, needed.groups()))
                raise WrongInput(
                    f"{path} needs {name}, which the sandbox does not have: write it in the file"
                )
        return {"file": path, **({"function": function} if function else {})}

    def _read(self, path: str) -> str:
        """The text of a file of code."""
        if self.file is None:
            raise WrongInput("its file cannot be read")
        try:
            return read_beside(self.file.path, self.file.place, path, VALIDATORS_BYTES).text
        except UsageError as error:
            raise WrongInput(error.message) from None

    def files(self) -> dict[str, str]:
        """Returns the validators file by its name; empty if there is no function."""
        if not (self._wrappers or self._sources) or self.file is None:
            return {}
        return {f"{self.file.path.stem}.validators.py": self._text()}

    def _text(self) -> str:
        """The whole file."""
        head = '"""Functions of checks, converted from promptfoo."""\n'
        return (
            "\n\n".join([head.rstrip(), *self._sources.values(), _GRADED.strip("\n"), *self._wrappers]) + "\n"
        )

    def _add(self, path: str) -> None:
        """Reads a file of code."""
        source = self._read(path)
        _verify(source, path)
        if twice := self._defined & _names(source):
            raise WrongInput(f"{min(twice)} is defined in two files of code: rename one")
        self._defined |= _names(source)
        self._sources[path] = source.strip("\n")

    def _named(self, key: tuple[str, str, float | None], body: str) -> str:
        """Adds a function, once."""
        if self.file is None:
            raise WrongInput("it is Python: write a function of validators_file, and a check that names it")
        if key not in self._names:
            name = f"check_{len(self._names) + 1}"
            text = f"def {name}(output, context):\n{body}\n    return _graded(result, {key[2]!r})"
            _verify(f"{_GRADED}\n\n{text}\n" if not key[0] else _GRADED, name)
            self._wrappers.append(text)
            self._names[key] = name
        return self._names[key]


def to_transform(written: Any, functions: Functions) -> dict[str, Any]:
    """Translates a transform.

    Args:
        written: code, or the path of a file.
        functions: of the validators file.

    Raises:
        WrongInput: it has no counterpart.
    """
    if not isinstance(written, str) or not written.strip():
        raise WrongInput("it is no code")
    if not written.startswith(FILE):
        return {"javascript": _script(written)}
    script = script_of(written)
    if script is None:
        raise WrongInput("its file is neither JavaScript nor Python")
    if script.language == "javascript":
        return {"javascript": functions.script(written)}
    path, _, function = script.path.partition(":")
    return {"python": functions.named_in(path, function or "get_transform")}


def _script(written: str) -> str:
    r"""JavaScript with the meaning that it has in promptfoo, where a line with its end is a body.

    >>> _script("return output.trim();\n"), _script("output.trim()")
    ('output.trim()', 'output.trim()')
    """
    code = written.strip()
    if "\n" in code or "\n" not in written:
        return code
    found = _RETURN.fullmatch(code)
    if found is None:
        raise WrongInput("its code ends with a line break but has no `return`, and fails in promptfoo too")
    return found[1]


def _verify(source: str, name: str) -> None:
    """Refuses code that validators may not have."""
    try:
        check_validators(TextFile(name, source))
    except UsageError as error:
        raise WrongInput(f"its code does not run in the sandbox: {error.message}") from None


def _names(source: str) -> set[str]:
    """The names that a file defines."""
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
