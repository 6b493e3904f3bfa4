"""Declares options as fields of frozen dataclasses; a command gets one object for each group of options."""

from collections.abc import Callable, Sequence
from dataclasses import Field, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from producer.cli.options.global_options import Topic, TopicOption
from shared.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_DECLARATION: Final = "click.option"
_NEEDS_MODEL: Final = "models"
"""The topic of options for every kind that can call a model."""


def option(*flags: str, topics: Sequence[Topic] = (), **settings: Any) -> Any:
    """Declares one option as a field of a dataclass; the arguments are those of `click.option`.

    Args:
        flags: spellings on the command line.
        topics: the kinds of files that the option is for; empty: all.
        settings: anything else.
    """
    unset: Any = () if settings.get("multiple") else False if settings.get("is_flag") else None
    if topics:
        settings |= {"cls": TopicOption, "topics": topics}
    return field(default=settings.get("default", unset), metadata={_DECLARATION: (flags, settings)})


def option_group(
    argument: str, group: "type[DataclassInstance]", **help_texts: str | None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds the options of a dataclass to a command.

    Args:
        argument: name of the command's argument that takes the values, as one object.
        group: the dataclass.
        help_texts: by field, where the command words an option differently; None where it has no such option.
    """

    def decorate(handler: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(handler)
        def command(*args: Any, **values: Any) -> Any:
            given = {each.name: values.pop(each.name) for each in fields(group) if each.name in values}
            return handler(*args, **{argument: group(**given)}, **values)

        for each in reversed(fields(group)):
            flags, settings = each.metadata[_DECLARATION]
            text = help_texts.get(each.name, settings["help"])
            if text is not None:
                command = click.option(*flags, each.name, **{**settings, "help": text})(command)
        return command

    return decorate


def given_flags(values: "DataclassInstance") -> list[str]:
    """Lists the flags of a group that were given."""
    return [_flag(each) for each in _given(values)]


def refuse_other_kinds(values: "DataclassInstance", kind: str, *, asks_model: bool) -> None:
    """Refuses options that are not for files of this kind.

    Args:
        values: a group.
        kind: what the file describes.
        asks_model: whether files of this kind take options of models.

    Raises:
        UsageError: one was given.
    """
    for each in _given(values):
        topics = each.metadata[_DECLARATION][1].get("topics", ())
        if not topics or kind in topics or (asks_model and _NEEDS_MODEL in topics):
            continue
        whose = "runs that ask a model" if _NEEDS_MODEL in topics else " and ".join(topics)
        raise UsageError(f"{_flag(each)} is for {whose}, and this file describes {kind}", hint="leave it out")


def _given(values: "DataclassInstance") -> "list[Field[Any]]":
    """Returns the fields whose values are not their defaults."""
    return [each for each in fields(values) if getattr(values, each.name) != each.default]


def _flag(declared: "Field[Any]") -> str:
    """Returns the first long spelling of an option, else the first one."""
    flags, _ = declared.metadata[_DECLARATION]
    return str(next((flag for flag in flags if flag.startswith("--")), flags[0]))
