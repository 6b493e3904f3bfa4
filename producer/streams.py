"""Finds parts of streams by what people write: `served`, `served:shop`, `served@2h..1h`, `--since 1h`."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from producer.text import plural
from shared.clock import now_ms
from shared.errors import AmbiguousRunError, UnknownRunError, UsageError
from shared.runs import RunStore
from shared.runs.served import PREFIX, STREAM, Window, window_named

AT: Final = "@"
"""Comes before the times in a name."""
_AGO: Final = re.compile(r"(\d{1,6})(s|m|min|h|d)", re.ASCII)
_UNIT_MS: Final[Mapping[str, int]] = {
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_HINT: Final = "write how long ago, such as 90s, 30m, 2h or 1d, or a time such as 2026-01-31T14:00"


def is_stream(text: str) -> bool:
    """Whether a name is that of a stream, or of a part of one.

    >>> [is_stream(text) for text in ("served", "served:shop", "served@1h", "served-1", "run-served")]
    [True, True, True, False, False]
    """
    return text == STREAM or text.startswith((PREFIX, STREAM + AT))


def namespace_of(name: str) -> str:
    """Returns the namespace of a stream, or of a part of one; empty where the name says none.

    >>> [namespace_of(name) for name in ("served:shop", "served:shop@1h", "served@1h")]
    ['shop', 'shop', '']
    """
    return name.partition(AT)[0].removeprefix(STREAM).removeprefix(":")


def window_of(store: RunStore, text: str, since: str = "", until: str = "") -> Window:
    """Finds the part of a stream that is meant.

    Args:
        store: reads streams.
        text: `served`, `served:NAMESPACE`, or one of them with `@SINCE..UNTIL` or `@SINCE`.
        since: when it begins, as `--since` says it; empty: with the first turn that is kept.
        until: when it ends; empty: now.

    Raises:
        UnknownRunError: there is no such stream.
        AmbiguousRunError: there are several.
        UsageError: a time cannot be read.
    """
    if exact := window_named(text):
        return exact
    _, at, within = text.partition(AT)
    if at:
        if since or until:
            raise UsageError(f"{text} has its times already", hint="leave --since and --until out")
        since, _, until = within.partition("..")
    namespace = known_stream(store, namespace_of(text))
    now = now_ms()
    state = store.stream(namespace).state(now)
    until_ms = max(now, state.last_ms + 1)  # the clock of Redis may be ahead
    if until:
        until_ms = min(until_ms, time_ms(until, now))
    since_ms = time_ms(since, now) if since else min(until_ms - 1, state.first_ms or now)
    if since_ms >= until_ms:
        what = f"{since} is not before {until or 'now'}"
        raise UsageError(f"{text}: the time ends before it begins: {what}", hint="--since is the earlier one")
    return Window(namespace, since_ms, until_ms)


def time_ms(text: str, now: int) -> int:
    """Reads a time as epoch milliseconds; one without a zone is UTC.

    >>> time_ms("1h", 3_660_000), time_ms("1970-01-01T00:01", 0), time_ms("1970-01-01T02:00+01:00", 0)
    (60000, 60000, 3600000)
    """
    if ago := _AGO.fullmatch(text):
        return max(1, now - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a time", hint=_HINT) from None
    return max(1, round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))


def known_stream(store: RunStore, named: str) -> str:
    """Returns the namespace of a stream; without a name that of the only one.

    Raises:
        UnknownRunError: there is no such stream.
        AmbiguousRunError: there are several.
    """
    known = store.namespaces_served()
    if named in known or (len(known) == 1 and not named):
        return named or known[0]
    listed = ", ".join(PREFIX + name for name in known)
    if known and not named:
        raise AmbiguousRunError(
            f"there are {plural(len(known), 'stream')}: {listed}", hint="name one of them"
        )
    hint = f"there is {listed}" if known else "turns of `proctor serve` make one"
    what = f"there is no stream {PREFIX}{named}" if named else "there is no stream yet"
    raise UnknownRunError(what, hint=hint, run=PREFIX + named)
