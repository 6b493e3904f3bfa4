"""Posts the summary of a run to a webhook when it has ended: readable by Slack, signed, tried several times.

    {"text": "run-… finished: 61 turns …", "event": "run.finished", "run_id": "…", "counts": {…}, "exit": 0}

`proctor config schema notify` prints the schema of the body (`Notification` in `producer/documents.py`).
With a secret, `X-Proctor-Signature` is `v1=` and the HMAC-SHA256 of `TIMESTAMP.BODY` in hexadecimal digits,
where TIMESTAMP is the value of `X-Proctor-Timestamp`.
"""

import asyncio
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from time import time
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from msgspec import UNSET, to_builtins
from msgspec.structs import replace

from producer.document import report_of
from producer.documents import AnyRun, Notification
from producer.report.to_terminal import summary_text
from shared.errors import ConfigError, UsageError
from shared.settings import Settings
from shared.upstream.addresses import NO_ADDRESS, address_problem
from shared.upstream.key_variables import ENV_PREFIX

if TYPE_CHECKING:
    import aiohttp

SIGNATURE: Final = "X-Proctor-Signature"
TIMESTAMP: Final = "X-Proctor-Timestamp"
TRIES: Final = 4
TRY_S: Final = 5.0
"""Time limit of one try."""
FIRST_WAIT_S: Final = 0.5
"""Wait before the second try; doubles with each further one."""
MOST_WAIT_S: Final = 5.0
"""Longest wait, whatever the server asks for."""
TEXT_LINES: Final = 3
"""Lines of the summary that the text has."""
BODY_BYTES: Final = 64_000
"""Largest body; a longer summary is left out."""
_AGAIN: Final = frozenset({408, 425, 429})
"""Statuses below 500 that may change."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where a summary is posted."""

    url: str
    secret: str = ""
    """Signs what is posted; empty: nothing does."""

    @property
    def place(self) -> str:
        """The address without its path, which is often a secret."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"


class HookReply(NamedTuple):
    """How one try ended."""

    why: str = ""
    """Why the message was not taken; empty: it was."""
    is_over: bool = True
    """Whether another try would end in the same way."""
    retry_after_s: float = 0.0
    """Seconds to wait, by the server's `Retry-After`."""


def read_webhook(text: str, settings: Settings, environment: Mapping[str, str]) -> Webhook:
    """Reads the value of `--notify`: an address, or `env:` and the variable that holds it.

    Raises:
        ConfigError: the variable is not set.
        UsageError: it is no address. It is not shown, since it may be a secret.
    """
    url = text
    if text.startswith(ENV_PREFIX):
        name = text.removeprefix(ENV_PREFIX)
        url = environment.get(name, "").strip()
        if not url:
            raise ConfigError(
                f"--notify: the variable {name} is not set", hint="set it to the URL of the webhook"
            )
    problem = address_problem(url)
    if problem == NO_ADDRESS or "@" in urlsplit(url).netloc:
        hint = "write --notify https://host/path, or env:VARIABLE"
        raise UsageError("--notify: that is no address of a webhook", hint=hint)
    return Webhook(url, settings.notify_secret or "")


def message(document: AnyRun) -> bytes:
    """Writes what is posted of a run's document."""
    report = report_of(document)
    name, *figures = summary_text(report).split("\n")
    first = (name, report.headline, str(report.verdict))
    lines = [line.strip() for line in (*first, *figures) if line.strip()]
    text = "\n".join(lines[:TEXT_LINES])
    for mark, escape in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # what Slack reads as markup
        text = text.replace(mark, escape)
    posted = Notification(
        text=text,
        schema_version=document.schema_version,
        run_id=document.run_id,
        kind=document.kind,
        state=document.state,
        counts=document.counts,
        gates=document.gates,
        exit=document.exit,
        summary=document.summary,
    )
    whole = json.dumps(to_builtins(posted)).encode()
    if len(whole) <= BODY_BYTES:
        return whole
    return json.dumps(to_builtins(replace(posted, summary=UNSET))).encode()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Signs a message.

    >>> signature("s", "1", b"{}")[:10]
    'v1=b253639'
    """
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, "sha256").hexdigest()


def notify(webhook: Webhook, document: AnyRun, settings: Settings) -> str:
    """Posts the summary of a run; returns why that failed, empty if it did not."""
    return asyncio.run(_post(webhook, message(document), settings))


async def _post(webhook: Webhook, body: bytes, settings: Settings) -> str:
    """Posts a message until it is taken, refused, or tried often enough."""
    from shared.upstream import egress, http_session  # noqa: PLC0415 - start-up: only a notification needs HTTP

    why = ""
    async with http_session.open_session(egress.EgressPolicy.of(settings)) as session:
        for attempt in range(TRIES):
            reply = await _try(session, webhook, body)
            if reply.is_over:
                return reply.why
            why = reply.why
            if attempt + 1 < TRIES:
                wait_s = max(FIRST_WAIT_S * 2**attempt, reply.retry_after_s)
                await asyncio.sleep(min(wait_s, MOST_WAIT_S))
    return f"{why}, {TRIES} times"


async def _try(session: "aiohttp.ClientSession", webhook: Webhook, body: bytes) -> HookReply:
    """Posts a message once; redirects are not followed, and what the server says is not read."""
    import aiohttp  # noqa: PLC0415 - start-up: only a notification needs HTTP

    from shared.upstream.egress import EgressError, egress_error  # noqa: PLC0415 - same

    headers = {"Content-Type": "application/json"}
    if webhook.secret:
        moment = str(int(time()))
        headers |= {TIMESTAMP: moment, SIGNATURE: signature(webhook.secret, moment, body)}
    try:
        async with session.post(
            webhook.url,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=TRY_S),
        ) as response:
            status, asked = response.status, response.headers.get("Retry-After", "")
            response.close()
    except TimeoutError:
        return HookReply(f"no answer within {TRY_S:g} s", is_over=False)
    except (aiohttp.ClientError, EgressError, OSError, ValueError) as error:
        refused = egress_error(error)
        return HookReply(str(refused)) if refused else HookReply(_in_words(error), is_over=False)
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return HookReply()
    is_over = status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _AGAIN
    return HookReply(f"status {status}", is_over, float(asked) if asked.isdecimal() else 0.0)


def _in_words(error: Exception) -> str:
    """Names an error of the connection, without the address that its text may hold."""
    reason = getattr(getattr(error, "os_error", None), "strerror", None) or getattr(error, "strerror", None)
    return f"{type(error).__name__}{f': {reason}' if reason else ''}"
