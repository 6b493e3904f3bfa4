"""The contract of code in checks, and of `transform`, which changes what is checked.

>>> TransformConfig.model_validate({"json_pointer": "/answer"}).stored
Transform(json_pointer='/answer', template=None, python=None, javascript=None)
"""

import keyword
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from shared.contracts.checks import Snippet, Transform
from shared.errors import WrongInput
from shared.templates.template_rendering import check

ENDINGS: Final = (".js", ".cjs", ".mjs")
"""Of files of JavaScript."""
_POINTER: Final = "/choices/0/text"


def _is_name(name: str) -> str:
    """Refuses what can be no function's name."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise PydanticCustomError("name", "should be the name of a function of validators_file")
    return name


def _is_code(text: str) -> str:
    """Refuses blank text."""
    if not text.strip():
        raise PydanticCustomError("blank", "should be code")
    return text


def _names_file(written: dict[str, str]) -> dict[str, str]:
    """Refuses a mapping that names no file."""
    if "file" not in written:
        raise PydanticCustomError("file", "should name a file")
    return written


def _pointer(text: str) -> str:
    """Refuses what is no JSON pointer."""
    if text and not text.startswith("/"):
        raise PydanticCustomError("pointer", "no JSON pointer: write {like}", {"like": _POINTER})
    return text


def template_text(text: str) -> str:
    """Refuses a text that looks like a template and is none."""
    try:
        check(text)
    except WrongInput as problem:
        what = {"what": problem.what, "hint": problem.hint}
        raise PydanticCustomError("template", "{what}: {hint}", what) from None
    return text


Pointer = Annotated[str, AfterValidator(_pointer)]
FunctionName = Annotated[str, Field(strict=True), AfterValidator(_is_name)]
_File = dict[
    Literal["file", "function", "source", "sha256"], Annotated[str, Field(strict=True, min_length=1)]
]
JavaScript = Annotated[
    Annotated[str, Field(strict=True), AfterValidator(_is_code), Tag("code")]
    | Annotated[_File, AfterValidator(_names_file), Tag("file")],
    Discriminator(lambda written: "file" if isinstance(written, dict) else "code"),
]
"""Code, or `{file: check.js, function: name}`, to which its text and hash are added at submission."""


class TransformConfig(BaseModel):
    """How an answer is changed before it is checked: in one of four ways."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    json_pointer: Pointer | None = None
    """The part of the JSON in it at this pointer."""
    template: Annotated[str, AfterValidator(template_text)] | None = None
    """A Jinja2 template over `output`, `json`, `input`, `vars` and `metadata`."""
    python: FunctionName | None = None
    """What a function of `validators_file` returns, in the sandbox."""
    javascript: JavaScript | None = None
    """What JavaScript returns, in the sandbox."""

    @model_validator(mode="before")
    @classmethod
    def _is_one(cls, written: Any) -> Any:
        """Refuses none of the ways, and several."""
        if isinstance(written, dict) and len(written) == 1:
            return written
        raise PydanticCustomError(
            "transform", "should be one of json_pointer, template, python or javascript"
        )

    @property
    def stored(self) -> Transform:
        """As it travels."""
        return Transform(self.json_pointer, self.template, self.python, self.javascript)


def script_of(written: Any) -> Snippet:
    """Reads what `javascript` is written with.

    >>> script_of("output.length < 100").is_module
    False
    >>> script_of({"file": "a.js", "source": "module.exports = (output) => true"}).is_module
    True
    """
    if isinstance(written, str):
        return Snippet(written)
    return Snippet(written.get("source", ""), is_module=True, function=written.get("function", ""))


def with_source(written: Any, read: Callable[[str], str]) -> Any:
    """Adds its text, and a hash of it, to what names a file.

    Args:
        written: as the bench has it, templates rendered; anything else is returned unchanged.
        read: reads the file.

    Raises:
        WrongInput: it is no file of JavaScript.

    >>> with_source({"file": "a.js"}, lambda name: "module.exports = 1")["sha256"][:4]
    '49f9'
    """
    if not isinstance(written, dict) or not isinstance(written.get("file"), str) or "source" in written:
        return written
    if not written["file"].endswith(ENDINGS):
        raise WrongInput(f"{written['file']!r} is no JavaScript", "write it as .js, .cjs or .mjs")
    source = read(written["file"])
    return {**written, "source": source, "sha256": sha256(source.encode()).hexdigest()}
