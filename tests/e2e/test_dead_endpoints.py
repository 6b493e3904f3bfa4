"""`proctor run` against models that nobody serves, or whose `api_base` is not quite right."""

from pathlib import Path
from typing import Final

import yaml

from tests.support.case_runs import document
from tests.support.cli import Cli
from tests.support.model_server import ModelServer
from tests.support.ports import free_port

QUICK: Final = ("--processes", "2")


def written(folder: Path, bases: dict[str, str], cases: int) -> Path:
    """A bench with these models at these places."""
    config = {
        "name": "Bench",
        "system_prompt": "Answer.",
        "models": list(bases),
        "model_configs": {model: {"api_base": base} for model, base in bases.items()},
        "test_cases": [
            {"id": f"c{nth}", "input": f"q{nth}", "checks": [{"contains": "H"}]} for nth in range(cases)
        ],
    }
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def test_a_run_without_a_server_is_aborted(cli: Cli, tmp_path: Path) -> None:
    """Nothing listens: after a few items the run ends with exit 3, and the error has URL, line and remedy."""
    base = f"http://127.0.0.1:{free_port()}"
    path = written(tmp_path, {"alpha": base}, 32)
    done = cli("run", path, *QUICK)
    assert done.code == 3, done
    assert f"127.0.0.1:{base.rpartition(':')[2]} cannot be reached: Connection refused" in done.err
    assert f"({base}/chat/completions, api_base at {path}:7)\n" in done.err
    assert f"hint: most servers want /v1: {base}/v1; `proctor retry " in done.err
    assert "errors by code: upstream_connection " in done.out
    assert "skipped" in done.out.splitlines()[-1]


def test_a_base_without_v1_is_named(cli: Cli, tmp_path: Path) -> None:
    """A server that finds nothing at the URL ends the run in the same way, after two calls."""
    with ModelServer() as server:
        base = server.api_base.removesuffix("/v1")
        done = cli("run", written(tmp_path, {"alpha": base}, 4), *QUICK)
    assert done.code == 3, done
    assert f"HTTP 404 at {base}/chat/completions: Not Found (most servers want /v1 at the end" in done.err
    assert f"most servers want /v1: {base}/v1" in done.err


def test_one_dead_model_ends_only_its_own_items(cli: Cli, tmp_path: Path) -> None:
    """Of four models one is served by nobody, and so is a judge: what needs them is an error."""
    with ModelServer() as server:
        places = dict.fromkeys(("alpha", "beta", "gamma"), server.api_base)
        places["dead"] = f"http://127.0.0.1:{free_port()}/v1"
        path = written(tmp_path, places, 12)
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        config["test_cases"][0]["checks"] = [{"rubric": "Is polite.", "model": "dead", "at_least": 0.5}]
        path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
        done = cli("run", path, *QUICK, "--json")
        found = document(done)
        shown = cli("run", path, *QUICK)
    sentence = f"({places['dead']}/chat/completions, api_base at {path}:"
    assert shown.err.count(sentence) == 1, shown
    assert "check rubric: Is polite. could not be asked: dead: " in shown.err, "an unreachable judge is named"
    assert (done.code, found["state"]) == (1, "finished")
    assert found["counts"] | {"passed": 33, "error": 15, "skipped": 0} == found["counts"]
    assert found["summary"]["errors"] == {"upstream_connection": 12, "check_unavailable": 3}
