"""The formats that can be converted: how each is recognised, and what translates it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from producer.convert import promptfoo
from producer.convert.report import Conversion, ForeignFile
from shared.errors import InputError


class Format(NamedTuple):
    """A foreign format."""

    name: str
    """What people call it."""
    fits: Callable[[ForeignFile], bool]
    """Whether a file is of this format."""
    convert: Callable[[ForeignFile], Conversion]
    """Translates a file; raises an `InputError` where there is nothing to translate."""


FORMATS: Final = (Format("promptfoo configuration", promptfoo.fits, promptfoo.convert),)
"""All formats; the first that fits is taken."""


def convert(file: ForeignFile) -> Conversion:
    """Translates a file of any known format.

    Raises:
        InputError: it is of no known format, or broken.
    """
    for each in FORMATS:
        if each.fits(file):
            return each.convert(file)
    known = ", ".join(each.name for each in FORMATS)
    raise InputError(f"{file.path}: of no format that can be converted", hint=f"there are: {known}")
