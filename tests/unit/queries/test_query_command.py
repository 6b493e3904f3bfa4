"""The command on the page of a queries run: every setting that decides an answer or a verdict is in it."""

from dataclasses import replace
from typing import Any, Final

import pytest

from producer.queries.report.html_query import command_of
from shared.contracts.query_run import QueryRun
from shared.kinds import QUERIES
from tests.support.run_infos import info

DECIDING: Final[dict[str, tuple[Any, str]]] = {
    "api_url": ("http://localhost:1", "--api-url http://localhost:1"),
    "method": ("PUT", "--method PUT"),
    "path": ("/ask", "--path /ask"),
    "query_at": ("/q", "--field query=/q"),
    "places": ({"answer": "/a"}, "--field answer=/a"),
    "headers": ({"X-Tenant": "$TENANT"}, "--header 'X-Tenant=$TENANT'"),
    "bearer_env": ("TOKEN", "--bearer-env TOKEN"),
    "timeout_s": (2.5, "--timeout-s 2.5"),
    "retry_errors": (3, "--retry-errors 3"),
    "fold_apostrophes": (True, "--fold-apostrophes"),
}
"""A value that is not the default, and how the command gives it."""
NOT_FOR_ONE_QUERY: Final = {
    *("delay_s", "concurrency", "together", "repeat"),  # how fast and how often many are sent
    *("start_from", "chosen", "offset", "continues"),  # which ones: the command names its query
    *("version", "http", "owner"),  # read from the file, and from the process
}


def command(run: QueryRun) -> str:
    """The command of the query Q-06 in a run with these settings."""
    queries = replace(info(), kind=QUERIES, snapshot={"v": 1, "source": "b.json"})
    return command_of(queries, run, "Q-06")


def test_every_setting_of_a_run_is_written_or_concerns_other_queries() -> None:
    """A new setting is put in one of the two groups, so that the command cannot lose it."""
    assert set(QueryRun.__struct_fields__) == DECIDING.keys() | NOT_FOR_ONE_QUERY


@pytest.mark.parametrize("name", DECIDING)
def test_command_gives_the_settings_of_the_run(name: str) -> None:
    """Pasted, it asks and judges the query as the run did."""
    value, words = DECIDING[name]
    assert f" {words} " in f"{command(QueryRun(**{name: value}))} "
    if name != "api_url":
        assert words not in command(QueryRun())
