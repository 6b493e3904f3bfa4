"""Tests which variables of a worker a queries run may send to the API."""

import pytest

from shared.contracts.query_run import QueryRun
from shared.errors import ConfigError
from worker.upstream.query_client import build_request

ENVIRONMENT = {"AWS_SECRET_ACCESS_KEY": "geheim", "HOME": "/root", "ASK_TOKEN": "abc", "TENANT": "blue"}


@pytest.mark.parametrize(
    "run",
    [
        QueryRun(bearer_env="AWS_SECRET_ACCESS_KEY"),
        QueryRun(headers={"X-A": "a $HOME"}),
        QueryRun(headers={"X-A": "${AWS_SECRET_ACCESS_KEY}"}),
        QueryRun(headers={"X-A": "$ASK_TOKEN $TENANT"}),
    ],
)
def test_other_variables_are_not_sent(run: QueryRun) -> None:
    """Neither as token nor in a header, whatever stands beside it; the way to allow it is named."""
    with pytest.raises(ConfigError, match="PROCTOR_KEY_VARIABLES"):
        build_request(run, ENVIRONMENT)


def test_keys_and_listed_variables_are_sent() -> None:
    """A token by its name, and what the worker lists."""
    run = QueryRun(bearer_env="ASK_TOKEN", headers={"X-Tenant": "$TENANT"})
    request = build_request(run, {**ENVIRONMENT, "PROCTOR_KEY_VARIABLES": "TENANT"})
    assert request.headers["Authorization"] == "Bearer abc"
    assert request.headers["X-Tenant"] == "blue"
