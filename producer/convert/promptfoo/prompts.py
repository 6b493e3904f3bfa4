"""Translates prompts: texts, and conversations in JSON or YAML."""

from collections.abc import Collection
from typing import Any, Final

from producer.convert.nunjucks import Variables, is_nunjucks, to_jinja
from producer.convert.promptfoo.suite import PromptTemplate
from shared.contracts.prompts import Prompt
from shared.errors import WrongInput

ID_CHARS: Final = 60
"""The longest label that becomes an id."""


def to_prompt(template: PromptTemplate, variables: Variables, taken: Collection[str]) -> Prompt:
    """Translates a prompt.

    Args:
        template: the prompt.
        variables: what it may name.
        taken: ids of prompts before it.

    Raises:
        WrongInput: it has no counterpart.
    """
    if template.is_code:
        raise WrongInput("it is written by code")
    label = template.label or ""
    given: dict[str, Any] = {}
    if label and len(label) <= ID_CHARS and "\n" not in label and label not in taken:
        given["id"] = label
    return Prompt(
        **given, user=to_jinja(template.raw, variables) if is_nunjucks(template.raw) else template.raw
    )
