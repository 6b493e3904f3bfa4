"""Proves of a Redis that a deployment starts that the ledger may live on it."""

import json
from collections.abc import Callable

from tests.support.cli import Cli
from tests.support.eventually import eventually


def check_redis(args: list[str], start: Callable[[list[str]], dict[str, str]], cli: Cli) -> None:
    """Proves that a Redis command line makes a server that the ledger may live on."""
    found = start(args)
    port = found.pop("REDIS_PORT")

    def is_well() -> None:
        done = cli("health", "redis", env=found)
        assert done.code == 0, done

    eventually(is_well, 20.0)
    report = cli("doctor", "--json", env=found)
    assert '"fail"' not in report.out, report
    by_name = {check["name"]: check for check in json.loads(report.out)["checks"]}
    assert by_name["persistence"]["status"] == "ok", by_name
    assert by_name["eviction"]["status"] == "ok", by_name
    refused = cli("health", "redis", env={"PROCTOR_REDIS_URL": f"redis://127.0.0.1:{port}/0"})
    assert refused.code == 3, refused
