"""The settings of a queries run, stored in its snapshot: the API, its request format, rate and repetitions.

The producer writes it at submit and workers read it, so that all workers send the same requests,
independently of their environment. It contains no secrets: a header's value may name variables (`$API_KEY`)
of the worker's environment, and a bearer token is always a variable.
"""

from collections.abc import Mapping
from typing import Any, Final, Self

import msgspec

from shared.contracts.query_vocabulary import DEFAULT_API_URL, QUERY_ENDPOINT, REQUEST_TIMEOUT_S
from shared.upstream.http_mapping import HttpMapping

SNAPSHOT_KEY: Final = "queries"
"""Its key in a run's snapshot."""


class QueryRun(msgspec.Struct, frozen=True, gc=False):
    """The settings of a queries run."""

    api_url: str = DEFAULT_API_URL
    """The API's base URL."""
    method: str = "POST"
    """One of `METHODS`."""
    path: str = QUERY_ENDPOINT
    """Below the base URL."""
    query_at: str = "/query"
    """JSON pointer into the request's body, or the parameter's name, where the query goes."""
    places: Mapping[str, str] = {}
    """JSON pointers into replies by name, where they differ from the specification's."""
    headers: Mapping[str, str] = {}
    """Headers of requests; `$NAME` in a value stands for a variable of the worker's environment."""
    bearer_env: str = ""
    """The variable of the worker's environment that holds the bearer token; empty for none."""
    timeout_s: float = REQUEST_TIMEOUT_S
    """Time limit of one request, the body included."""
    delay_s: float | int = 0.0
    """Seconds between two queries, over the whole fleet; also the base of the waits after status 429."""
    concurrency: int = 1
    """Maximum concurrent queries, across all workers."""
    together: int = 1
    """Maximum concurrent queries of one chunk."""
    retry_errors: int = 0
    """Retries of timeouts, broken connections and status 500 and above."""
    start_from: str = ""
    """Id of the first query; empty for the first of the file."""
    version: str = "unknown"
    """The baselines' version."""
    repeat: int = 1
    """How often each query is sent."""
    fold_apostrophes: bool = False
    """Whether all apostrophes count as the same character in keywords and answers."""
    chosen: str = ""
    """How many queries of the file were chosen, and with which options; empty when all were."""
    offset: int = 0
    """Queries of the file before the first one of the run."""
    continues: str = ""
    """The run that has the results of earlier queries; empty when there is none."""
    http: HttpMapping | None = None
    """How the API is asked, by the file; None: as method, path, place and headers say."""
    owner: str = ""
    """Host, process id and folder of the evaluation harness that submitted it; empty for other commands."""

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any]) -> Self:
        """Reads it back; keys of a later version are ignored.

        >>> QueryRun.from_snapshot({"queries": {"delay_s": 2.0, "from_the_future": 1}}).delay_s
        2.0
        """
        return msgspec.convert(snapshot.get(SNAPSHOT_KEY) or {}, cls)
