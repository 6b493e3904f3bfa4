"""Reads results of queries, ours and those of files: what is absent or of another type counts as empty."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.contracts.query_vocabulary import json_object, latency_of, server_latency_ms


@dataclass(frozen=True, slots=True)
class CheckFindings:
    """What one check of a query found."""

    keys: Mapping[str, Any]
    """As they are stored."""

    @property
    def passed(self) -> bool:
        """The verdict."""
        return bool(self.keys.get("pass"))

    @property
    def is_applicable(self) -> bool:
        """Whether there was anything to check."""
        return bool(self.keys.get("applicable", True))

    @property
    def reason(self) -> str:
        """What it says itself."""
        return str(self.keys.get("reason") or "")

    def number(self, name: str) -> int:
        """A count or a time; 0 without one."""
        found = self.keys.get(name)
        return found if isinstance(found, int) else 0

    def texts(self, name: str) -> Sequence[str]:
        """A list of texts."""
        found = self.keys.get(name)
        return [each for each in found if isinstance(each, str)] if isinstance(found, list | tuple) else []


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query with its result, or its baseline, which has the first four keys."""

    keys: Mapping[str, Any]
    """As they are stored."""

    @property
    def id(self) -> Any:
        """Name of the query."""
        return self.keys.get("id")

    @property
    def category(self) -> Any:
        """What it is about."""
        return self.keys.get("category")

    @property
    def query(self) -> Any:
        """What was asked."""
        return self.keys.get("query")

    @property
    def is_oos(self) -> bool:
        """Whether it is out of scope."""
        return bool(self.keys.get("is_oos"))

    @property
    def response(self) -> dict[str, Any]:
        """The reply; empty without one."""
        return json_object(self.keys.get("response"))

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the reply says of itself."""
        return json_object(self.response.get("metadata"))

    @property
    def own_ms(self) -> float | None:
        """The latency in it, whatever it is; None without one."""
        found = self.metadata.get("latencyMs")
        return found if isinstance(found, int | float) else None

    @property
    def answer(self) -> Any:
        """What the reply answers."""
        return self.response.get("answer")

    @property
    def error(self) -> Any:
        """Why there is no answer; None where there is one."""
        return self.keys.get("error")

    @property
    def is_failed(self) -> bool:
        """Whether there is no answer that could be checked."""
        return self.error is not None

    @property
    def passed(self) -> bool:
        """Whether every applicable check passed."""
        return bool(self.keys.get("overall_pass"))

    @property
    def client_ms(self) -> int | None:
        """Latency by the client's clock; None where nobody measured it."""
        found: int | None = self.keys.get("client_latency_ms")
        return found

    @property
    def server_ms(self) -> int | None:
        """Latency of which the reply tells; None where it does not.

        >>> AskedQuery({"response": {"metadata": {"latencyMs": 120}}}).server_ms
        120
        """
        claim = server_latency_ms(self.response, -1)
        return None if claim < 0 else claim

    @property
    def latency_ms(self) -> int:
        """Latency of its check, else of the reply, else of the client's clock."""
        measured = latency_of(self.client_ms, 0)
        otherwise = server_latency_ms(self.response, measured)
        return latency_of(self.check("latency").keys.get("latency_ms"), otherwise)

    @property
    def measured_ms(self) -> int:
        """Latency by the client's clock; where nobody measured it, of the reply.

        >>> AskedQuery({"client_latency_ms": 150, "response": {"metadata": {"latencyMs": 120}}}).measured_ms
        150
        """
        return latency_of(self.client_ms, self.latency_ms)

    @property
    def is_citation_applicable(self) -> bool:
        """Whether there was anything to cite."""
        return self.check("citation_present").is_applicable

    @property
    def is_cited(self) -> bool:
        """Whether a source or citation is there, applicable or not."""
        check = self.check("citation_present")
        counts = [
            count
            for key in ("source_count", "citation_count")
            if isinstance(count := check.keys.get(key), int)
        ]
        return any(count > 0 for count in counts) if counts else check.is_applicable and check.passed

    @property
    def is_vacuous(self) -> bool:
        """Whether an in-scope answer counts as deflected without any keyword having been asked for."""
        return not self.is_oos and not self.is_failed and not self.check("must_contain").number("total")

    @property
    def checks(self) -> Mapping[str, Any]:
        """The checks that were made, by their names."""
        return json_object(self.keys.get("checks"))

    def check(self, name: str) -> CheckFindings:
        """Returns one check; without findings where it was not made."""
        return CheckFindings(json_object(self.checks.get(name)))
