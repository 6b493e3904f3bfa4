"""The formats that can be converted: how each is recognised, and what translates it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from producer.convert import deepeval, inspect_data, openai_evals, promptfoo
from producer.convert.report import Conversion, ForeignFile
from shared.errors import InputError


class Format(NamedTuple):
    """A foreign format."""

    name: str
    """What `--from` calls it."""
    what: str
    """What a file of it is."""
    fits: Callable[[ForeignFile], bool]
    """Whether a file is of this format."""
    convert: Callable[[ForeignFile], Conversion]
    """Translates a file; raises an `InputError` where there is nothing to translate."""


FORMATS: Final = (
    Format("inspect-log", "log of Inspect", inspect_data.is_log, inspect_data.convert_log),
    Format("openai-evals", "evals of OpenAI's registry", openai_evals.fits, openai_evals.convert),
    Format("deepeval", "test cases of DeepEval", deepeval.fits, deepeval.convert),
    Format("inspect", "data set of Inspect", inspect_data.is_data_set, inspect_data.convert_data_set),
    Format("promptfoo", "configuration of promptfoo", promptfoo.fits, promptfoo.convert),
)
"""All formats; the first that fits is taken."""


def convert(file: ForeignFile, name: str | None = None) -> Conversion:
    """Translates a file.

    Args:
        file: where it is.
        name: of its format; None: it is recognised.

    Raises:
        InputError: it is of no known format, or broken.
    """
    for each in FORMATS:
        if each.name == name or (name is None and each.fits(file)):
            return each.convert(file)
    known = ", ".join(each.what for each in FORMATS)
    raise InputError(f"{file.path}: of no format that can be converted", hint=f"there are: {known}")
