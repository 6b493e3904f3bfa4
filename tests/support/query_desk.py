"""A producer of queries runs for tests: writes baselines, submits them, and reads what came of them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from producer.load.source import Source
from producer.options import SubmitOptions
from producer.submit import submit
from shared.codecs.item_rows import ItemRow
from shared.contracts.query_run import QueryRun
from tests.support.eventually import eventually
from tests.support.query_results import baseline
from tests.support.workers import Desk

if TYPE_CHECKING:
    import redis


def numbered(count: int) -> list[dict[str, Any]]:
    """Baselines that the scripted API's answer meets."""
    return [baseline(f"Q-{number:03}", query=f"query {number}") for number in range(1, count + 1)]


class QueryDesk(Desk):
    """Submits baselines.

    Args:
        client: of the server that the workers use.
        url: the same server's URL.
        folder: for the files.
    """

    def __init__(self, client: "redis.Redis", url: str, folder: Path) -> None:
        super().__init__(client, url)
        self.folder = folder

    def submit_queries(self, baselines: list[dict[str, Any]], **settings: Any) -> str:
        """Submits baselines and returns the run's id; settings are those of `QueryRun`."""
        path = self.folder / "baselines.json"
        path.write_text(json.dumps({"version": "1.0", "queries": baselines}))
        options = SubmitOptions(queries=QueryRun(**settings), await_disk=False)
        return submit(self.ledger, self.publisher, Source(path), options=options).run

    def ended(self, run: str, state: str = "finished", within_s: float = 40.0) -> list[ItemRow]:
        """Waits until a run is in a final state and returns its rows in input order."""

        def is_over() -> None:
            info = self.store.info(run)
            assert info.state == state, f"{info.state}: {info.done} of {info.total}"

        eventually(is_over, within_s)
        return self.rows(run)

    def rows(self, run: str) -> list[ItemRow]:
        """The rows of a run as they stand."""
        return [row for page in self.store.item_pages(run) for row in page]

    def results(self, run: str) -> list[dict[str, Any]]:
        """The results that are there, opened."""
        return [json.loads(row.line) for row in self.rows(run) if row.code]
