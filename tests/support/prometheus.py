"""A real Prometheus that scrapes a real fleet, and a run that gives each panel something to show."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

from proctor import Producer
from tests.support.case_runs import bench
from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.model_server import ModelServer, Say
from tests.support.processes import Process, Processes
from tests.support.tools import require_tool
from tests.support.tree import ROOT

DEPLOY: Final = ROOT / "deploy"
RULES: Final = DEPLOY / "prometheus" / "proctor.rules.yml"
DASHBOARD: Final = DEPLOY / "grafana" / "dashboards" / "proctor.json"
LISTENING: Final = re.compile(r'msg="Listening on" address=(127\.0\.0\.1:\d+)')
SERVE: Final = re.compile(r"serve +http://(127\.0\.0\.1:\d+)  token (\S+)")
METRICS: Final = re.compile(r"metrics +http://(127\.0\.0\.1:\d+)/metrics")
CASES: Final = 10


class Prometheus:
    """A server with the shipped configuration, but for the target and how often it is scraped.

    Args:
        processes: starts it.
        folder: for its files.
        fleet: what to scrape.
    """

    def __init__(self, processes: Processes, folder: Path, fleet: "Fleet") -> None:
        program = require_tool("prometheus")
        text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
        for shipped, here in (
            ("localhost:9464", fleet.metrics),
            ("localhost:7358", fleet.serve),
            (": 15s", ": 1s"),
        ):
            assert shipped in text, shipped
            text = text.replace(shipped, here)
        folder.mkdir()
        (folder / "prometheus.yml").write_text(text, encoding="utf-8")
        (folder / RULES.name).write_bytes(RULES.read_bytes())
        self.process = processes.start(
            program,
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
        )
        self.process.wait_for("Server is ready to receive web requests", within_s=30)
        found = LISTENING.search(self.process.errors + self.process.output)
        assert found, self.process.output_text()
        self.url = f"http://{found[1]}"

    def _get(self, path: str, **parameters: str) -> Any:
        """Asks its HTTP interface; returns the data."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        with urlopen(f"{self.url}/api/v1/{path}{query}", timeout=10) as reply:  # noqa: S310 - loopback
            return json.load(reply)["data"]

    def series(self, expr: str) -> list[dict[str, Any]]:
        """Answers an expression: its series, now."""
        found: list[dict[str, Any]] = self._get("query", query=expr)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The alert rules, with how their last evaluation went."""
        found: list[dict[str, Any]] = self._get("rules")["groups"][0]["rules"]
        return found


class Query(NamedTuple):
    """One query of the dashboard."""

    panel: str
    expr: str


def dashboard() -> dict[str, Any]:
    """The shipped dashboard."""
    found: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return found


def queries() -> Iterator[Query]:
    """Every query of the dashboard, its variables filled in as Grafana fills them in."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            expr = target["expr"].replace("$__rate_interval", "30s").replace("$upstream", ".*")
            yield Query(panel["title"], expr)


class Fleet(NamedTuple):
    """A running `proctor up`."""

    up: Process
    metrics: str
    """Host and port of the exporter."""
    serve: str
    """Host and port that take turns."""
    token: str


def start_fleet(cli: Cli) -> Fleet:
    """Starts `proctor up` with one worker process, which also takes turns."""
    up = cli.start(
        "up", "--processes", "1", "--no-flower", "--metrics-port", "0", "--serve", "--serve-port", "0"
    )
    up.wait_for("ready", within_s=60)
    up.wait_for("  token ", within_s=30)
    metrics, serve = METRICS.search(up.errors), SERVE.search(up.errors)
    assert metrics and serve, up.output_text()  # noqa: PT018 - both are looked for in one text
    return Fleet(up, metrics[1], serve[1], serve[2])


def talk(fleet: Fleet) -> None:
    """Has a turn decided."""
    with Producer(f"http://{fleet.serve}", fleet.token) as turns:
        assert turns.send({"threadId": "t", "message": "ok"}).result(30).decision == "skip"


def keep_busy(cli: Cli, folder: Path, *, cases: int = CASES, alpha_rpm: int = 6000) -> None:
    """Runs a bench twice: with refused calls, a limit that parks items, and then from the cache."""

    def script(prompt: str, nth: int) -> Say:
        """Turns the first call of each fifth case away."""
        is_refused = nth == 1 and prompt.endswith(("0", "5"))
        return Say("slowly", 429, {"Retry-After": "1"}) if is_refused else Say('{"n": 1}', after_s=0.1)

    with ModelServer(script) as server:
        path = bench(folder, server, [{"input": f"case {at}", "expected": {"n": 1}} for at in range(cases)])
        cli("limits", "set", "alpha", "--rpm", str(alpha_rpm))
        cli("limits", "set", "beta", "--rpm", "120")
        for _ in range(2):
            done = cli("run", path, "-q", "--json", within_s=90)
            assert done.code == 0, done


def answered(prometheus: Prometheus, query: Query) -> None:
    """Asserts that Prometheus has series for a query."""
    assert prometheus.series(query.expr), f"no series for {query.panel!r}: {query.expr}"


def wait_for_answers(prometheus: Prometheus, fleet: Fleet) -> None:
    """Waits until every query of the dashboard has series; turns are decided meanwhile."""
    for query in queries():
        if "serve" in query.expr:
            talk(fleet)
        eventually(lambda query=query: answered(prometheus, query), 30)  # type: ignore[misc]  # mypy sees no type for the default
