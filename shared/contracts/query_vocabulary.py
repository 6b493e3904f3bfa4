"""The words and numbers of the harness specification, and how its ids sort; needs nothing but Python.

`shared.contracts.queries` holds the same contract as pydantic models. This file is apart from it so that a
worker can check answers, and a command line can print its help, without importing pydantic.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

DEFAULT_DELAY_S: Final = 30
"""Seconds between queries."""
DEFAULT_API_URL: Final = "http://localhost:3000"
"""Where the API under test listens."""
QUERY_ENDPOINT: Final = "/api/query"
"""The path that takes a query, by POST."""
METHODS: Final = ("POST", "GET", "PUT")
"""Methods of requests; GET sends the query as a parameter of the URL."""
HEADER_VARIABLE: Final = re.compile(r"\$(\w+|\{\w+\})")
"""A variable of the workers in the value of a header."""
REQUEST_TIMEOUT_S: Final = 30
"""Seconds a request may take, the body included."""
LATENCY_THRESHOLD_MS: Final = 5000
"""An answer must come in less than this."""
MAX_RETRIES: Final = 3
"""How often a query that met status 429 is sent again."""
EXPECTED_QUERIES: Final = 50
"""How many baselines the specification has; any other number works, with a warning."""

MAX_QUERY_CHARS: Final = 20_000
"""A longer query is an input error."""
MAX_LATENCY_MS: Final = 2**53
"""Longest latency that is accepted from a server, in milliseconds: larger numbers are not exact in JSON."""

CHECKS: Final = (
    "must_contain",
    "must_not_contain",
    "expected_docs",
    "citation_present",
    "oos_handling",
    "latency",
)
"""The six checks, in the order of the specification."""


class Category(StrEnum):
    """What a query is about."""

    BOOKING = "booking"
    """Placing, changing and documenting bookings."""
    CUSTOMS = "customs"
    """Permits, tariff codes, duties, origin."""
    CARRIER = "carrier"
    """Carriers, their services and restrictions."""
    SLA = "sla"
    """What was promised: times, scope, claims."""
    EDGE_CASE = "edge_case"
    """Vague, mixed, hostile or out of scope."""


CATEGORIES: Final = tuple(str(category) for category in Category)
"""The five categories, in the order of the specification."""


def id_order(identifier: str) -> tuple[tuple[Any, ...], str]:
    """Sort key that puts Q-2 before Q-10 and equals plain order where numbers are padded.

    Numbers are compared by length and digits, never converted: an id may hold a million of them.

    >>> sorted(["Q-10", "Q-2", "Q-1", "P-3"], key=id_order)
    ['P-3', 'Q-1', 'Q-2', 'Q-10']
    """
    texts = re.split(r"([0-9]+)", identifier)
    key: list[Any] = []
    for position, text in enumerate(texts):
        digits = text.lstrip("0")
        key.append((len(digits), digits) if position % 2 else text)
    return tuple(key), identifier


def json_object(value: Any) -> dict[str, Any]:
    """Returns a JSON object as it is, and an empty one in place of anything else.

    >>> json_object(None), json_object({"a": 1})
    ({}, {'a': 1})
    """
    return value if isinstance(value, dict) else {}


def latency_of(claim: Any, otherwise: int) -> int:
    """Reads a latency in whole milliseconds; what is no believable number gives way to `otherwise`.

    The fraction is cut, so that 4999.6 stays below the threshold of 5000.

    >>> latency_of(4999.6, 1), latency_of("12", 7), latency_of(-1, 7), latency_of(None, 7)
    (4999, 7, 7, 7)
    """
    is_number = isinstance(claim, int | float) and not isinstance(claim, bool)
    return int(claim) if is_number and 0 <= claim <= MAX_LATENCY_MS else otherwise


def server_latency_ms(response: Any, otherwise: int) -> int:
    """Takes the server's own latency out of a reply, or the one that the client measured.

    >>> server_latency_ms({"metadata": {"latencyMs": 120}}, 150), server_latency_ms(None, 150)
    (120, 150)
    """
    metadata = json_object(json_object(response).get("metadata"))
    return latency_of(metadata.get("latencyMs"), otherwise)


def confidence_of(response: Any) -> tuple[str, str]:
    """Takes level and reason of the confidence out of a reply; empty where it has none.

    >>> confidence_of({"confidence": {"level": "High", "reason": "3 sections"}})
    ('High', '3 sections')
    >>> confidence_of({"confidence": "Low"}), confidence_of({"confidence": 0.4})
    (('Low', ''), ('', ''))
    """
    confidence = json_object(response).get("confidence")
    if isinstance(confidence, str):
        return confidence, ""
    parts = json_object(confidence)
    level, reason = parts.get("level"), parts.get("reason")
    return level if isinstance(level, str) else "", reason if isinstance(reason, str) else ""


def failed(result: Mapping[str, Any]) -> bool:
    """Returns whether a query has no answer that could be checked.

    >>> failed({"error": "Timeout after 30s"}), failed({"error": None})
    (True, False)
    """
    return result.get("error") is not None


def run_id_at(epoch_ms: int, *, copy: int = 1) -> str:
    """Names a run by the UTC second in which it began; later ones of the same second carry a number.

    >>> run_id_at(1_770_733_800_000), run_id_at(1_770_733_800_000, copy=2)
    ('eval-2026-02-10T14-30-00', 'eval-2026-02-10T14-30-00-2')
    """
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return f"eval-{moment:%Y-%m-%dT%H-%M-%S}" + (f"-{copy}" if copy > 1 else "")


def began_at(run_id: str) -> str:
    """Reads the moment out of such a name; empty for other names.

    >>> began_at("eval-2026-02-10T14-30-00-2"), began_at("nightly")
    ('2026-02-10 14:30:00 UTC', '')
    """
    found = re.match(r"eval-([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2})-([0-9]{2})-([0-9]{2})", run_id)
    return f"{found[1]} {found[2]}:{found[3]}:{found[4]} UTC" if found else ""
