"""A real Prometheus scrapes a real fleet: panels have series, alerts are evaluated, nothing names a run."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.cli import Cli
from tests.support.eventually import eventually
from tests.support.prometheus import (
    DEPLOY,
    RULES,
    Prometheus,
    keep_busy,
    queries,
    start_fleet,
    wait_for_answers,
)
from tests.support.redis_server import RedisServer
from tests.support.tools import require_tool


def promtool(*arguments: str | Path, text: str | None = None) -> str:
    """Runs promtool; it has nothing to complain of."""
    program = require_tool("promtool", package="prometheus")
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_configuration_and_rules_are_valid() -> None:
    """Promtool accepts the scrape configuration with its rules, and every unit test of the rules passes."""
    promtool("check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    promtool("check", "rules", RULES)
    promtool("test", "rules", DEPLOY / "prometheus" / "proctor.rules.test.yml")


def test_every_query_of_the_dashboard_parses(tmp_path: Path) -> None:
    """Promtool accepts each query of the dashboard as an expression."""
    rules = [{"record": f"panel:{at}", "expr": query.expr} for at, query in enumerate(queries())]
    path = tmp_path / "panels.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    assert f"{len(rules)} rules found" in promtool("check", "rules", path)


@pytest.mark.timeout(240)
def test_prometheus_answers_every_panel_and_alert(cli: Cli, tmp_path: Path) -> None:
    """After a real run each panel's query has series, each alert was evaluated, and no label names a run."""
    require_tool("prometheus")
    fleet = start_fleet(cli)
    prometheus = Prometheus(cli.processes, tmp_path / "prometheus", fleet)
    keep_busy(cli, tmp_path)
    wait_for_answers(prometheus, fleet)

    def alerts_were_evaluated() -> None:
        rules = prometheus.rules()
        assert rules
        assert {rule["health"] for rule in rules} == {"ok"}, rules

    eventually(alerts_were_evaluated, 30)
    raised = {rule["name"] for rule in prometheus.rules() if rule["alerts"]}
    assert raised <= {"ProctorRateLimited"}, "nothing but what this run really met"
    texts = []
    for target in (fleet.metrics, fleet.serve):
        with urlopen(f"http://{target}/metrics", timeout=10) as reply:
            texts.append(reply.read().decode())
        promtool("check", "metrics", text=texts[-1])
    text = "".join(texts)
    runs = json.loads(cli("runs", "--json").out)["runs"]
    assert len(runs) == 2
    assert not [run["run_id"] for run in runs if run["run_id"] in text]
    fleet.up.send(signal.SIGINT)
    assert fleet.up.wait(20) == 130


def test_metrics_serves_the_embedded_server(cli: Cli) -> None:
    """Without a URL the exporter finds the embedded server, and SIGTERM ends it with code 0."""
    exporter = cli.start("metrics", "--port", "0")
    exporter.wait_for("metrics: http://127.0.0.1:", within_s=20)
    url = exporter.errors.split("metrics: ")[1].split()[0]
    with urlopen(url, timeout=10) as reply:  # noqa: S310 - loopback
        assert reply.headers["Content-Type"].startswith("text/plain")
        text = reply.read().decode()
    assert text.count("# TYPE proctor_") == text.count("# HELP proctor_") >= 15
    assert "proctor_redis_up 1.0" in text
    promtool("check", "metrics", text=text)
    exporter.terminate()
    assert exporter.wait(15) == 0


def test_an_exporter_without_redis_serves_that_it_is_away(
    new_redis_server: Callable[..., RedisServer], cli: Cli
) -> None:
    """Started while Redis is away, the exporter answers `proctor_redis_up 0`, and 1 once Redis is there."""
    server = new_redis_server()
    server.kill()
    cli.processes.env |= {"PROCTOR_REDIS_URL": server.url, "PROCTOR_CONNECT_PATIENCE_S": "0.5"}
    exporter = cli.start("metrics", "--port", "0")
    exporter.wait_for("metrics: http://127.0.0.1:", within_s=20)
    assert "does not answer within 0.5 s" in exporter.errors
    url = exporter.errors.split("metrics: ")[1].split()[0]

    def shows(value: str) -> None:
        with urlopen(url, timeout=10) as reply:  # noqa: S310 - loopback
            assert f"\nproctor_redis_up {value}\n" in reply.read().decode()

    shows("0.0")
    server.start()
    eventually(lambda: shows("1.0"), 15)
    exporter.terminate()
    assert exporter.wait(15) == 0
