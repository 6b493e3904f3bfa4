"""Translates transforms: code that changes an answer before it is checked."""

from typing import Any

from producer.convert.promptfoo.functions import Functions
from producer.convert.promptfoo.named_files import FILE
from producer.convert.promptfoo.providers import script_of
from shared.errors import WrongInput


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
        return {"javascript": written.strip()}
    script = script_of(written)
    if script is None:
        raise WrongInput("its file is neither JavaScript nor Python")
    path, _, function = script.path.partition(":")
    if script.language == "python":
        return {"python": functions.named_in(path, function or "get_transform")}
    return {"javascript": {"file": path, **({"function": function} if function else {})}}
