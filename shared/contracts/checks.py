"""The form in which a check of a test case travels: read from YAML at submit, evaluated by workers.

`worker.validation.checks` makes it of what people write, and has the table of what `check` can be. What a
check needs is all in it: its argument is rendered, schemas are inlined, paths and patterns are verified.
"""

from typing import Any, Final

import msgspec

MAX_NAME_CHARS: Final = 80
"""Characters of a check's name; a longer default name is cut."""


class Check(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One check with its options.

    >>> Check("contains", "Paris").label
    'contains: Paris'
    >>> Check("not", checks=(Check("contains", "Paris"),)).label
    'not contains: Paris'
    >>> Check("json_equals", {"capital": "Paris"}, name="the capital").label
    'the capital'
    """

    check: str
    """Its row in the table of checks, such as `contains`."""
    argument: Any = None
    """Value that the output is compared with; None for a bare word."""
    name: str = ""
    """What people call it; empty: `label` makes one."""
    at_least: float | None = None
    """The score from which it passes; None: what the kind of check says."""
    weight: float = 1.0
    """How much its score counts in the mean of a case; 0: it is shown and decides nothing."""
    json_path: str = ""
    """Which part of the JSON in the output is checked (RFC 9535); empty: the output."""
    options: dict[str, Any] = {}
    """Those that only this kind of check has, as they were written; absent means the default."""
    checks: tuple["Check", ...] = ()
    """The inner checks of `all`, `any`, `not`, and those of a tool call's arguments."""

    @property
    def label(self) -> str:
        """Its name, or one made of the check and the beginning of its argument."""
        return self.name or _default_name(self)


def _default_name(check: Check) -> str:
    """Names a check after what it does."""
    if check.check == "not" and len(check.checks) == 1:
        return f"not {check.checks[0].label}"[:MAX_NAME_CHARS]
    if check.check == "tool_call":
        return f"tool_call: {check.argument or 'none'}"[:MAX_NAME_CHARS]
    if check.checks and check.argument is None:
        return f"{check.check}: {', '.join(inner.label for inner in check.checks)}"[:MAX_NAME_CHARS]
    if check.argument is None:
        return check.check
    argument = check.argument
    text = argument if isinstance(argument, str) else msgspec.json.encode(argument).decode()
    return f"{check.check}: {' '.join(text[:MAX_NAME_CHARS].split())}"[:MAX_NAME_CHARS]
