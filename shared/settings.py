"""All settings that come from the environment: read once, each with its unit, default and variable.

One frozen object, read once, so that all parts of a process use the same values. Plain dataclasses and no
pydantic, because every command imports this file, even `--help`.

    PROCTOR_REDIS_URL=redis://db.example:6379/0
    PROCTOR_REDIS_URL_FILE=/run/secrets/redis-url      the same, kept out of the environment
"""

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from shared.errors import ConfigError
from shared.names import DISTRIBUTION, ENVIRONMENT_PREFIX
from shared.server.redis_url import MASK, mask_password

DAY_S: Final = 24 * 3600
CACHE_TTL_S: Final = 30 * DAY_S
"""How long a model's answer is cached by default."""
LEASE_S: Final = 15.0
"""How long a claim lasts by default; all times of the ledger follow from it (`shared.ledger.times`)."""
MOST_DEFAULT_PROCESSES: Final = 4
SHORTEST_LEASE_S: Final = 1.0
"""With shorter leases, pauses of a busy machine would look like dead workers."""
REDACTED: Final = frozenset(("card", "mail"))
"""What `PROCTOR_REDACT` can name; the rules are in `shared.redaction`."""
_HOST: Final = re.compile(r"(\*\.)?[\w-]+(\.[\w-]+)*|[0-9a-f:]+")
"""A host's name, all hosts below a name, or an address."""
FROM_DEFAULT: Final = "default"
FROM_ENVIRONMENT: Final = "environment"


class SettingOrigin(NamedTuple):
    """One setting as `config show` prints it."""

    name: str
    """The field's name."""
    env: str
    """The variable that sets it."""
    value: Any
    """Its value, with passwords masked."""
    origin: str
    """`default`, `environment`, the path of a file, or the option of the command line."""


def _text(text: str) -> str:
    return text


def _folder(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _positive_whole(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number from 1 is needed")
    return int(text)


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number from 0 is needed")
    return int(text)


def _positive_seconds(text: str) -> float:
    number = _seconds(text)
    if number == 0:
        raise ValueError("a number of seconds above 0 is needed")
    return number


def _lease_seconds(text: str) -> float:
    number = _seconds(text)
    if number < SHORTEST_LEASE_S:
        raise ValueError(f"at least {SHORTEST_LEASE_S:g} s are needed")
    return number


def _hosts(text: str) -> str:
    hosts = names_in(text.lower())
    if not all(_HOST.fullmatch(host) for host in hosts):
        raise ValueError("hosts alone are needed, such as api.openai.com, *.example.com")
    return ", ".join(hosts)


def _variables(text: str) -> str:
    if not all(name.isascii() and name.isidentifier() for name in names_in(text)):
        raise ValueError("names of variables are needed, such as MY_MODEL_PASSWORD")
    return ", ".join(names_in(text))


def names_in(text: str | None) -> tuple[str, ...]:
    """Reads a list of names, with commas or blanks between them.

    >>> names_in("a, b c"), names_in(None)
    (('a', 'b', 'c'), ())
    """
    return tuple((text or "").replace(",", " ").split())


def _rules(text: str) -> str:
    if not set(names_in(text.lower())) <= REDACTED:
        raise ValueError(f"one or more of {', '.join(sorted(REDACTED))} are needed")
    return ", ".join(names_in(text.lower()))


def _patterns(text: str) -> str:
    for number, line in enumerate(text.splitlines(), 1):
        try:
            matches_nothing = re.compile(line).search("") is not None
        except re.error as error:
            raise ValueError(f"line {number} is not a regular expression: {error.msg}") from None
        if matches_nothing:
            raise ValueError(f"line {number} also matches the empty text")
    return text


def _yes_or_no(text: str) -> bool:
    words = {"1": True, "yes": True, "true": True, "0": False, "no": False, "false": False}
    if text.lower() not in words:
        raise ValueError("1 or 0 is needed")
    return words[text.lower()]


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"one of {', '.join(words)} is needed")
        return text.lower()

    return read


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ValueError("a number of seconds is needed")
    return number


def default_data_dir(env: Mapping[str, str]) -> Path:
    """Returns the default data folder of this user.

    Raises:
        ConfigError: this user has no home folder.

    >>> default_data_dir({"XDG_DATA_HOME": "/srv/data"}).name
    'proctor'
    """
    chosen = Path(env.get("XDG_DATA_HOME", ""))
    # The XDG specification: a relative path in it is to be ignored.
    if chosen.is_absolute() and sys.platform != "darwin":
        return chosen / DISTRIBUTION
    home = "~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share"
    try:
        return Path(home, DISTRIBUTION).expanduser()
    except RuntimeError:
        raise ConfigError(
            "this user has no home folder for Proctor's data",
            hint=f"set {ENVIRONMENT_PREFIX}DATA_DIR to a folder that can be written",
        ) from None


def default_processes() -> int:
    """How many worker processes to start: the cores that we may use, at most 4.

    >>> 1 <= default_processes() <= 4
    True
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(usable or 1, MOST_DEFAULT_PROCESSES))


def _login(text: str) -> str:
    user, _, password = text.partition(":")
    if not user or not password or "," in text or any(letter.isspace() for letter in text):
        # Flower takes a list of logins, parted by commas.
        raise ValueError("USER:PASSWORD is needed, without commas and spaces")
    return text


def mask_login(login: str) -> str:
    """Hides the password of a login.

    >>> mask_login("alice:geheim")
    'alice:***'
    """
    return f"{login.partition(':')[0]}:{MASK}"


def mask_secret(_secret: str) -> str:
    """Hides a secret, its length included."""
    return MASK


def _setting(default: Any, read: Callable[[str], Any], *, mask: Callable[[str], str] | None = None) -> Any:
    return field(default=default, metadata={"read": read, "mask": mask})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings from the environment; the variable of a field is `PROCTOR_` and its name in capitals."""

    data_dir: Path = field(metadata={"read": _folder})
    """Folder of the embedded server's data, worker heartbeats and logs."""
    redis_url: str | None = _setting(None, _text, mask=mask_password)
    """Redis server of the ledger; without it, an embedded server is started."""
    broker_url: str | None = _setting(None, _text, mask=mask_password)
    """Broker, if it is not the server of the ledger: Redis or Valkey."""
    env_file: str | None = _setting(None, _text)
    """File with variables for commands; `none`: no file; by default keys of `.env` in the working folder."""
    grace_s: float = _setting(25.0, _seconds)
    """Seconds for which a stopping worker lets its running items finish."""
    results_ttl_s: int = _setting(30 * DAY_S, _positive_whole)
    """Seconds for which a run is kept after its end."""
    namespace_ttl_s: int = _setting(30 * DAY_S, _positive_whole)
    """Seconds for which the threads of a named namespace are kept after their last commit."""
    cache_ttl_s: int = _setting(CACHE_TTL_S, _positive_whole)
    """Seconds for which a model's answer is reused for identical requests."""
    texts_ttl_s: int | None = _setting(None, _positive_whole)
    """Seconds after a run's end until workers delete its texts and keep its figures; by default never."""
    redact: str | None = _setting(None, _rules)
    """What is replaced in texts before they are stored: `mail`, `card` or both."""
    redact_patterns: str | None = _setting(None, _patterns, mask=mask_secret)
    """Regular expressions, one a line, whose matches are replaced in the same way."""
    confirm_calls: int = _setting(1_000, _whole)
    """Number of calls, judges and checks included, from which a terminal asks for confirmation; 0: never."""
    max_backlog_items: int = _setting(5_000_000, _positive_whole)
    """Number of unfinished items in the ledger above which `submit` waits."""
    processes: int = field(default_factory=default_processes, metadata={"read": _positive_whole})
    """Number of worker processes to start."""
    in_flight: int = _setting(100, _positive_whole)
    """Maximum number of items in flight in one worker process."""
    turn_slots: int | None = _setting(None, _positive_whole)
    """Chunks of turns for which a worker process asks models at a time, by default 2; more for `serve`."""
    lease_s: float = _setting(LEASE_S, _lease_seconds)
    """Seconds for which a worker may be silent before others take over; other intervals scale with it."""
    patience_s: float = _setting(60.0, _positive_seconds)
    """Seconds for which running work waits for a Redis server that has become unavailable."""
    connect_patience_s: float = _setting(5.0, _positive_seconds)
    """Seconds for which commands and workers wait for Redis when they start."""
    embedded_idle_s: float = _setting(15.0, _positive_seconds)
    """Seconds without a client after which an embedded server stops."""
    unsafe_validators: bool = _setting(default=False, read=_yes_or_no)
    """Whether this worker runs validators even if their process cannot be sandboxed."""
    allow_code: bool = _setting(default=False, read=_yes_or_no)
    """Whether commands and workers run code that stands beside benches, as `--allow-code` does."""
    key_variables: str | None = _setting(None, _variables)
    """Further variables that may be sent as keys, in addition to `*_API_KEY`, `*_TOKEN` and known ones."""
    allowed_hosts: str | None = _setting(None, _hosts)
    """The only hosts that this worker may call, such as `api.openai.com, *.example.com`; by default all."""
    block_private: bool = _setting(default=False, read=_yes_or_no)
    """Whether private and loopback addresses are called only if a variable of this worker names them."""
    trust_env: bool = _setting(default=False, read=_yes_or_no)
    """Whether this worker uses the proxies in `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."""
    log_format: str = _setting("auto", _one_of("auto", "console", "json"))
    """Format of worker logs: `console`, `json`, or `auto` for console on a terminal and JSON elsewhere."""
    log_level: str = _setting("info", _one_of("debug", "info", "warning", "error"))
    """Minimum level of worker logs."""
    flower_auth: str | None = _setting(None, _login, mask=mask_login)
    """Login of Flower as `USER:PASSWORD`; without it, anyone who can reach its port can use it."""
    notify_secret: str | None = _setting(None, _text, mask=mask_secret)
    """Secret that signs what `--notify` posts; without it, nothing is signed."""
    origins: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )
    """Origin of the fields that are not defaults."""

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{s.name}={s.value!r}' for s in describe(self))})"

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str] = os.environ, *, origins: Mapping[str, str] = MappingProxyType({})
    ) -> Self:
        """Reads the settings; an empty variable counts as not set.

        Args:
            env: the environment.
            origins: where variables come from that a file has set.

        Raises:
            ConfigError: a value cannot be used; the message names the variable and the value.
        """
        values: dict[str, Any] = {}
        found_in = {}
        for setting in _settings():
            found = _look_up(env, setting)
            if found is not None:
                values[setting.name], origin = found
                is_plain = origin == FROM_ENVIRONMENT
                found_in[setting.name] = (
                    origins.get(variable_of(setting.name), origin) if is_plain else origin
                )
        if "data_dir" not in values:
            values["data_dir"] = default_data_dir(env)
        return cls(**values, origins=MappingProxyType(found_in))

    @property
    def answers_ttl_s(self) -> int:
        """Seconds for which answers of models are cached: no longer than other texts are kept."""
        return min(self.cache_ttl_s, self.texts_ttl_s or self.cache_ttl_s)

    def override(self, origin: str, **values: Any) -> Self:
        """Returns settings with other values; `origin` is where they come from, such as `--redis`."""
        origins = {**self.origins, **dict.fromkeys(values, origin)}
        return replace(self, **values, origins=MappingProxyType(origins))


def describe(settings: Settings) -> list[SettingOrigin]:
    """Lists all settings with their variable and origin, passwords masked."""
    rows = []
    for each in _settings():
        value = getattr(settings, each.name)
        mask = each.metadata.get("mask")
        if mask is not None and value is not None:
            value = mask(value)
        origin = settings.origins.get(each.name, FROM_DEFAULT)
        rows.append(SettingOrigin(each.name, variable_of(each.name), value, origin))
    return rows


def variable_of(name: str) -> str:
    """Returns the environment variable of a setting.

    >>> variable_of("redis_url")
    'PROCTOR_REDIS_URL'
    """
    return f"{ENVIRONMENT_PREFIX}{name.upper()}"


def _settings() -> list[Field[Any]]:
    return [each for each in fields(Settings) if "read" in each.metadata]


def _look_up(env: Mapping[str, str], setting: Field[Any]) -> tuple[Any, str] | None:
    variable = variable_of(setting.name)
    text, origin = env.get(variable, "").strip(), FROM_ENVIRONMENT
    file = env.get(f"{variable}_FILE", "").strip() if setting.metadata.get("mask") else ""
    if file:
        if text:
            raise ConfigError(f"{variable} and {variable}_FILE are both set", hint="unset one of them")
        text, origin = _read_file(f"{variable}_FILE", file), file
    if not text:
        return None
    try:
        return setting.metadata["read"](text), origin
    except (ValueError, RuntimeError) as error:
        shown = MASK if setting.metadata.get("mask") else text
        raise ConfigError(
            f"{variable}={shown!r} cannot be used: {error}", hint=f"change or unset {variable}"
        ) from None


def _read_file(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"{variable}={path!r} cannot be read: {why}",
            hint=f"write the value alone into that file, or unset {variable}",
        ) from None
