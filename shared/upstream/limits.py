"""The configured limits of upstreams, and their current state across all workers.

A limit is set for a model as the configuration names it (`openai/gpt-4o`), for a provider (`openai`) or for
the URL of an API. It holds for each account (API key) that is called with and, for a model, at each endpoint
(`api_base`) where it is called, over the whole fleet. The scripts
of `worker/upstream` enforce it; this file is what `proctor limits` and the workers read and write.
Longer than 300 lines, because how limits are named, set and shown has to agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from shared import keys
from shared.errors import UsageError
from shared.upstream.model_target import ModelTarget

if TYPE_CHECKING:
    from shared.ledger.calls import ScriptCaller

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
PLACE: Final = "@"
"""Stands before the place in the name of a scope."""
MINUTE_MS: Final = 60_000.0
ACCOUNT_CHARS: Final = 8
"""Characters of the digest that stands for an API key in names of scopes; the key itself is nowhere."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What may be sent; a field that is None bounds nothing."""

    rpm: float | None = None
    """Requests a minute."""
    tpm: float | None = None
    """Tokens a minute, of question and answer."""
    concurrency: int | None = None
    """Calls under way at a time."""
    pace_s: float | None = None
    """Seconds between two requests, without any burst."""

    def over(self, other: "Limits") -> "Limits":
        """Returns these limits, with those of `other` where a field is None.

        >>> Limits(rpm=60).over(Limits(rpm=1, concurrency=4))
        Limits(rpm=60, tpm=None, concurrency=4, pace_s=None)
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in values.items() if value is not None})


@dataclass(frozen=True, slots=True)
class Scope:
    """What limits hold for: one model, provider, API or run, and the account it is called with."""

    key: str
    """As `limits set` takes it."""
    account: str = ""
    """See `account_of`; empty where there are no accounts."""
    limits: Limits = Limits()
    """Limits of the caller itself; those of `limits set` take precedence."""
    place: str = ""
    """URL of the endpoint where a model is called, as `limit_key` writes it; empty: its provider's own."""

    @property
    def name(self) -> str:
        """What the limiter calls it.

        >>> Scope("openai/gpt-4o", "1f2e3d4c").name
        'openai/gpt-4o 1f2e3d4c'
        >>> Scope("mine", "1f2e3d4c", place="http://localhost:1/v1").name
        'mine @http://localhost:1/v1 1f2e3d4c'
        """
        return f"{self.target} {self.account}".rstrip()

    @property
    def target(self) -> str:
        """The name without the account."""
        return f"{self.key} {PLACE}{self.place}" if self.place else self.key

    @property
    def label(self) -> str:
        """The target for people."""
        return label_of(self.key, self.place)

    @classmethod
    def parse(cls, name: str) -> "Scope":
        """Reads a name; limits are no part of it.

        >>> Scope.parse("mine @http://localhost:1/v1 1f2e3d4c").place, Scope.parse("openai 1f2e3d4c").account
        ('http://localhost:1/v1', '1f2e3d4c')
        """
        key, *more = name.split(" ", 2)
        place = more.pop(0)[len(PLACE) :] if more and more[0].startswith(PLACE) else ""
        return cls(key, " ".join(more), place=place)


@dataclass(frozen=True, slots=True)
class ScopeState:
    """The current state of a scope."""

    key: str
    """Model, provider, API URL or `run:ID`."""
    account: str
    """Stands for the API key."""
    in_flight: int
    """Calls under way."""
    adaptive: float | None
    """The adaptive limit of concurrent calls; None while calls have not timed out."""
    paused_ms: int
    """How long the pause lasts that the upstream requested."""
    breaker: str
    """`closed`, `open` or `half-open`."""
    open_ms: int
    """How long the breaker stays open."""
    next_ms: int
    """How long until the next request may be sent."""
    latency_ms: float | None
    """The usual latency."""
    place: str = ""
    """URL of the endpoint where a model is called; empty: its provider's own."""
    failed: int = 0
    """Latest calls that failed or were not answered at all, which the breaker counts."""
    counted: int = 0
    """All of these latest calls."""
    adaptive_rpm: float | None = None
    """The adaptive limit of requests a minute; None while the upstream has refused no more than a few."""

    @property
    def label(self) -> str:
        """Name of the scope, for people."""
        return label_of(self.key, self.place)


def label_of(key: str, place: str) -> str:
    """Names a scope for people.

    >>> label_of("openai", ""), label_of("mine", "http://localhost:1/v1")
    ('openai', 'mine at http://localhost:1/v1')
    """
    return f"{key} at {place}" if place else key


def account_of(secret: str) -> str:
    """Returns a digest that identifies an API key without revealing it; empty for none.

    >>> account_of(""), len(account_of("sk-1")), account_of("sk-1") == account_of("sk-2")
    ('', 8, False)
    """
    return (
        sha256(b"proctor account " + secret.encode(errors="surrogateescape")).hexdigest()[:ACCOUNT_CHARS]
        if secret
        else ""
    )


def limit_key(text: str) -> str:
    """Returns the key of a model, a provider or a URL for limits.

    Raises:
        UsageError: it is empty, or no URL.

    >>> limit_key(" HTTPS://user:secret@API.Example.com:443/v1/?x=1 "), limit_key("openai/gpt-4o")
    ('https://api.example.com/v1', 'openai/gpt-4o')
    """
    text = text.strip()
    if not text or any(letter.isspace() for letter in text):
        raise UsageError(
            f"{text!r} names nothing that has limits", hint="a model (openai/gpt-4o), a provider, or a URL"
        )
    if "://" not in text:
        return text
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{text!r} is no URL: {error}") from None
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    place = host if port in {None, DEFAULT_PORTS.get(parts.scheme)} else f"{host}:{port}"
    return f"{parts.scheme}://{place}{parts.path.rstrip('/')}"


def model_key(model: str) -> str:
    """Returns the key of a model for limits: model names may contain characters that keys may not.

    >>> model_key("openai/gpt-4o"), model_key("my own model")
    ('openai/gpt-4o', 'my_own_model')
    """
    try:
        return limit_key(model)
    except UsageError:
        return "_".join(model.split()) or "_"


def upstream_key(target: ModelTarget) -> str:
    """Returns the key of a model's upstream: its provider, or the endpoint that is called instead.

    >>> upstream_key(ModelTarget("openai/gpt-4o")), upstream_key(ModelTarget("mine", "http://localhost:80/v1/"))
    ('openai', 'http://localhost/v1')
    """
    return limit_key(target.api_base) if target.api_base else model_key(target.model).partition("/")[0]


def model_scope(target: ModelTarget, account: str = "") -> Scope:
    """Names the scope of a model where it is called.

    Args:
        target: the model.
        account: `account_of` the key that is used.

    >>> model_scope(ModelTarget("mine", "http://localhost:1/v1")).name
    'mine @http://localhost:1/v1'
    """
    return Scope(model_key(target.model), account, place=upstream_key(target) if target.api_base else "")


class LimitBook:
    """The limits that people have set, in Redis.

    Args:
        caller: a connection; `Ledger.caller` is one.
    """

    def __init__(self, caller: "ScriptCaller") -> None:
        self._caller = caller

    def set(self, key: str, limits: Limits) -> None:
        """Sets the limits of a model, provider or API; workers apply them within about a second.

        Raises:
            UsageError: the key is empty, or a limit is no positive number.
        """
        key = limit_key(key)
        values = {each.name: getattr(limits, each.name) for each in fields(limits)}
        for name, value in values.items():
            if value is not None and not 0 < value < 1e12:  # noqa: PLR2004 - any number of that size is a mistake
                raise UsageError(f"{name} of {key} is {value:g}", hint="a positive number is needed")
        value = msgspec.json.encode({name: value for name, value in values.items() if value is not None})
        self._patiently("hset", keys.LIMITS_KEY, key, value)

    def unset(self, key: str) -> bool:
        """Removes the limits of a key; False when there were none."""
        return bool(self._patiently("hdel", keys.LIMITS_KEY, limit_key(key)))

    def settings(self) -> dict[str, Limits]:
        """Returns all limits that were set."""
        found: Mapping[bytes, bytes] = self._patiently("hgetall", keys.LIMITS_KEY)
        return {key.decode(): limits_from(value) for key, value in sorted(found.items())}

    def states(self) -> list[ScopeState]:
        """Returns the state of each scope that was used in the last hour."""
        client = self._caller.client
        names = [name.decode() for name in self._patiently("zrange", keys.SCOPES_KEY, 0, -1)]

        def read() -> list[Any]:
            with client.pipeline(transaction=False) as pipeline:
                pipeline.time()
                for name in names:
                    pipeline.hgetall(keys.scope_key(name))
                    pipeline.zcard(keys.permits_key(name))
                return list(pipeline.execute())

        (seconds, micros), *rows = self._caller.patiently(read)
        now_ms = seconds * 1000 + micros // 1000
        states, gone = [], []
        for name, state, in_flight in zip(names, rows[::2], rows[1::2], strict=True):
            if state:
                states.append(scope_state(name, state, in_flight, now_ms))
            else:
                gone.append(name)
        if gone:
            self._patiently("zrem", keys.SCOPES_KEY, *gone)
        return sorted(states, key=lambda state: (state.key, state.place, state.account))

    def reset(self, key: str) -> int:
        """Resets pauses, breakers, adaptive limits and reservations of a key's scopes; set limits are kept.

        Calls in flight still count. Returns how many scopes there were.
        """
        key = limit_key(key)
        names = [name.decode() for name in self._patiently("zrange", keys.SCOPES_KEY, 0, -1)]
        mine = [name for name in names if Scope.parse(name).key == key]
        if mine:
            self._patiently("unlink", *map(keys.scope_key, mine))
            self._patiently("zrem", keys.SCOPES_KEY, *mine)
        return len(mine)

    def _patiently(self, command: str, *arguments: Any) -> Any:
        return self._caller.patiently(lambda: getattr(self._caller.client, command)(*arguments))


def scope_state(name: str, state: Mapping[bytes, bytes], in_flight: int, now_ms: float) -> ScopeState:
    """Reads the hash of a scope.

    >>> scope_state("openai", {b"pause": b"1500.000", b"rl": b"900.000"}, 2, 1000.0).paused_ms
    500
    """
    scope = Scope.parse(name)
    value = {field.decode(): float(number) for field, number in state.items()}
    until = value.get("open", 0.0)
    left_ms = max(0, round(until - now_ms))
    return ScopeState(
        key=scope.key,
        account=scope.account,
        place=scope.place,
        in_flight=in_flight,
        adaptive=value.get("cwnd") or None,
        adaptive_rpm=MINUTE_MS / value["pace"] if value.get("pace") else None,
        paused_ms=max(0, round(value.get("pause", 0.0) - now_ms)),
        breaker="closed" if not until else "open" if left_ms else "half-open",
        open_ms=left_ms,
        next_ms=max(0, round(max(value.get("rl", 0.0), value.get("tl", 0.0)) - now_ms)),
        latency_ms=value.get("rtt") or None,
        failed=int(value.get("b0", 0) + value.get("b1", 0)),
        counted=int(sum(value.get(field, 0) for field in ("g0", "g1", "b0", "b1"))),
    )


def limits_from(value: bytes) -> Limits:
    r"""Reads stored limits; what a later version may have added is ignored.

    >>> limits_from(b'{"rpm": 60, "from_the_future": 1}').rpm
    60
    """
    found = msgspec.json.decode(value)
    return Limits(**{each.name: found[each.name] for each in fields(Limits) if each.name in found})
