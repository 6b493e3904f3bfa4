"""The contract of code beside a bench, and of plug-ins: a file with a function, or the name of one installed.

>>> Code(python="provider.py:ask", env=["MY_API_KEY"]).named
CodeName(language='python', file='provider.py', function='ask')
"""

import re
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from shared.contracts.cases import JsonObject, Text
from shared.names import ENVIRONMENT_PREFIX

Language = Literal["python", "javascript"]

MOST_VARIABLES: Final = 100
"""Variables that are passed to a process of code."""
_FILES: Final = {
    "python": re.compile(r"(?P<file>.+\.py)(?::(?P<function>[^\W\d]\w*(?:\.[^\W\d]\w*)?))?"),
    "javascript": re.compile(r"(?P<file>.+\.[cm]?[jt]s)(?::(?P<function>[^\W\d][\w$]*))?"),
}
_PLUGIN: Final = re.compile(r"[\w.-]+", re.ASCII)


class CodeName(NamedTuple):
    """What is called: a function of a file."""

    language: Language
    file: str
    """Its path."""
    function: str
    """Its name; empty: the usual one."""


def _python(text: str) -> str:
    """Refuses what names no Python file."""
    return _named("python", text, "provider.py, or provider.py:function")


def _javascript(text: str) -> str:
    """Refuses what names no JavaScript file."""
    return _named("javascript", text, "provider.js, or provider.mjs:name")


def _named(language: Language, text: str, like: str) -> str:
    if _FILES[language].fullmatch(text) is None:
        raise PydanticCustomError(
            "code", "no {language} file: write {like}", {"language": language, "like": like}
        )
    return text


def _variable(text: str) -> str:
    """Refuses what is no variable's name, and those that only Proctor reads."""
    if not (text.isascii() and text.isidentifier()):
        raise PydanticCustomError("variable", "not the name of a variable")
    if text.startswith(ENVIRONMENT_PREFIX):
        raise PydanticCustomError("variable", "a setting of Proctor, which no code is given")
    return text


def is_plugin_name(text: str) -> bool:
    """Returns whether a text can be the name of an entry point.

    >>> is_plugin_name("my-check"), is_plugin_name("a b")
    (True, False)
    """
    return _PLUGIN.fullmatch(text) is not None


def _plugin(text: str) -> str:
    """Refuses what no entry point is called."""
    if not is_plugin_name(text):
        raise PydanticCustomError("plugin", "not the name of a plug-in: `proctor plugins` lists them")
    return text


class Code(BaseModel):
    """A function that is called: of a file beside the bench, or of an installed package."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    python: Annotated[Text, AfterValidator(_python)] | None = None
    """A Python file beside the bench, with `:function` if not the usual one; needs `--allow-code`."""
    javascript: Annotated[Text, AfterValidator(_javascript)] | None = None
    """A file of JavaScript or TypeScript, likewise, which `node` runs."""
    plugin: Annotated[Text, AfterValidator(_plugin)] | None = None
    """The name under which an installed package has registered it."""
    env: Annotated[list[Annotated[Text, AfterValidator(_variable)]], Field(max_length=MOST_VARIABLES)] = []
    """The variables of the environment that the code of a file is given; all others it does not see."""
    config: JsonObject = {}
    """What it is given beside each call."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        """Refuses two of them, and options of none."""
        given = [name for name in ("python", "javascript", "plugin") if getattr(self, name) is not None]
        if len(given) > 1:
            text = f"{' and '.join(given)} both stand here: keep one of them"
            raise PydanticCustomError("misplaced", "{text}", {"text": text, "key": given[1]})
        for key, fits in (("env", self.named is not None), ("config", bool(given))):
            if getattr(self, key) and not fits:
                text = f"{key} is for code: write python or javascript too"
                raise PydanticCustomError("misplaced", "{text}", {"text": text, "key": key})
        return self

    @property
    def named(self) -> CodeName | None:
        """The file and the function; None of a plug-in, and without any."""
        if self.python is not None:
            return _split("python", self.python)
        return None if self.javascript is None else _split("javascript", self.javascript)


def _split(language: Language, written: str) -> CodeName:
    found = _FILES[language].fullmatch(written)
    if found is None:
        raise AssertionError(written)  # the contract has matched it
    return CodeName(language, found["file"], found["function"] or "")


class CaseSource(Code):
    """Code beside the bench that makes cases."""

    returns: Literal["cases", "promptfoo"] = "cases"
    """Whether it returns cases as benches have them, or promptfoo's tests (`{vars, assert}`)."""
    threshold: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """The mean score from which a test of promptfoo passes that has none; null: each assertion must pass."""

    @model_validator(mode="after")
    def _is_file(self) -> Self:
        """Refuses what is no file of code."""
        if self.threshold is not None and self.returns == "cases":
            text = "threshold is for promptfoo's tests: cases have at_least"
            raise PydanticCustomError("misplaced", "{text}", {"text": text, "key": "threshold"})
        if self.named is None:
            raise PydanticCustomError("code", "no code that makes cases: write python: tests.py:function")
        return self


def _form_of_source(source: Any) -> str:
    """Names the form of an entry, so that mistakes are told of one of the two only."""
    return "union-code" if isinstance(source, dict | CaseSource) else "union-path"


CaseFile: TypeAlias = Annotated[
    Annotated[Text, Tag("union-path")] | Annotated[CaseSource, Tag("union-code")],
    Discriminator(_form_of_source),
]
"""A path or a pattern, or code that makes cases."""


def _listed(written: Any) -> Any:
    """One of them stands for a list of one."""
    return [written] if isinstance(written, str | dict) else written


CaseFiles: TypeAlias = Annotated[
    list[CaseFile],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=CaseFile | list[CaseFile]),
]
