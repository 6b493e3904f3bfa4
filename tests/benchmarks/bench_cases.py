"""Measures test cases through the whole program: recorded answers, a model of 50 ms, a limit of requests.

Each row is one `proctor run`, from the command to its end, server and workers included; CPU is that of the
command and its workers. The reference is a bare loop over litellm against the same server, in one process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

from tests.support.tree import ROOT

LATENCY_S: Final = 0.05
IN_FLIGHT: Final = 100
CHECKS: Final = {"regex_pattern": "\\d", "reference": "one"}
LOOP: Final = """
import asyncio, litellm, sys
litellm.suppress_debug_info = True
async def main():
    places = asyncio.Semaphore(int(sys.argv[2]))
    async def ask(n):
        async with places:
            await litellm.acompletion(model="openai/m", messages=[{"role": "user", "content": f"case {n}"}],
                api_base=sys.argv[1], api_key="k", num_retries=0, max_retries=0)
    await asyncio.gather(*map(ask, range(int(sys.argv[3]))))
asyncio.run(main())
"""


class Measured(NamedTuple):
    """One row."""

    name: str
    cases: int
    seconds: float
    cpu_s: float
    note: str = ""

    def line(self) -> str:
        """Writes the row."""
        rate, each_ms = self.cases / self.seconds, 1000 * self.cpu_s / self.cases
        return f"{self.name:<44} {rate:>9,.0f} {each_ms:>11.2f}  {self.note}"


def timed(name: str, cases: int, command: list[str], environment: dict[str, str]) -> Measured:
    """Runs a command and measures it with everything it waits for."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), monotonic()
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    seconds, after = monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{name}: exit {done.returncode}\n{done.stderr}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    note = ""
    if done.stdout.startswith("{"):
        counts = json.loads(done.stdout)["counts"]
        note = ", ".join(f"{word} {counts[word]:,}" for word in ("passed", "failed", "error", "skipped"))
    return Measured(name, cases, seconds, cpu_s, note)


def bench(folder: Path, cases: list[dict[str, Any]], **more: Any) -> Path:
    """Writes a bench; JSON is YAML."""
    path = folder / f"bench-{len(list(folder.iterdir()))}.yaml"
    base = {"name": "bench", "system_prompt": "Answer.", "models": ["m"], "test_cases": cases}
    path.write_text(json.dumps({**base, **more}), encoding="utf-8")
    return path


@contextmanager
def provider() -> Iterator[str]:
    """Starts a model server of 50 ms in a process of its own; yields its `api_base`."""
    command = [sys.executable, "-m", "tests.support.model_server", "--port", "0", "--latency", str(LATENCY_S)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait()


def recorded(folder: Path, number: int) -> list[str]:
    """Writes cases with recorded answers, for all stages but the judge; every tenth differs."""
    cases = [
        {
            "input": f"case {n}",
            "expected": {"id": n, "tags": ["a", "b"]},
            "regex_pattern": "\\d",
            "reference": "one",
        }
        for n in range(number)
    ]
    (folder / "schema.json").write_text('{"type": "object", "required": ["id"]}', encoding="utf-8")
    rows = [
        {"case": n, "model": "m", "output": json.dumps({"tags": ["b", "a"], "id": n if n % 10 else -1})}
        for n in range(number)
    ]
    outputs = folder / "outputs.jsonl"
    outputs.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = bench(folder, cases, config={"judge_model": None}, schema_path="schema.json")
    return [str(path), "--outputs", str(outputs)]


def recorded_checks(folder: Path, number: int) -> list[str]:
    """Writes cases with recorded answers and five checks each, two of them templates; each tenth differs."""
    checks = [
        {"contains": "city-{{ n }}"},
        {"not": {"contains": "sorry"}},
        {"json_path": "$.city", "equals": "city-{{ n }}"},
        {"number": 2.1, "tolerance": 0.2, "json_path": "$.millions"},
        {"json_schema": {"type": "object", "required": ["city", "millions"]}},
    ]
    cases = [{"input": f"case {n}", "vars": {"n": n}} for n in range(number)]
    rows = [
        {
            "case": n,
            "model": "m",
            "output": json.dumps({"city": f"city-{n if n % 10 else -1}", "millions": 2.0}),
        }
        for n in range(number)
    ]
    outputs = folder / "checked.jsonl"
    outputs.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = bench(folder, cases, default_checks=checks, config={"judge_model": None})
    return [str(path), "--outputs", str(outputs)]


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recorded", type=int, default=5_000)
    parser.add_argument("--checked", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=3_000)
    parser.add_argument(
        "--limited", type=int, default=300, help="cases under a limit of 30 requests a second"
    )
    asked = parser.parse_args()
    proctor = [str(Path(sys.executable).parent / "proctor")]
    print(f"{'':<44} {'cases/s':>9} {'CPU ms/case':>11}")
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as name, provider() as api_base:
        folder = Path(name)
        env = {**os.environ, "PROCTOR_DATA_DIR": str(folder / "data")}
        run = [*proctor, "run", "-q", "--json"]
        files = recorded(folder, asked.recorded)
        print(timed("recorded answers, all stages but the judge", asked.recorded, [*run, *files], env).line())
        files = recorded_checks(folder, asked.checked)
        print(timed("recorded answers, five checks", asked.checked, [*run, *files], env).line())
        config = {"judge_model": None, "concurrency": IN_FLIGHT, "cache": False}
        more = {"model_configs": {"m": {"api_base": api_base}}, "config": config}
        calls = [{"input": f"case {n}", "expected": {"ok": True}} for n in range(asked.calls)]
        path = str(bench(folder, calls, **more))
        print(timed(f"a model of 50 ms, {IN_FLIGHT} in flight", asked.calls, [*run, path], env).line())
        subprocess.run(
            [*proctor, "limits", "set", "m", "--rpm", "1800", "-q"],
            env=env,
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        path = str(bench(folder, calls[: asked.limited], **more))
        row = timed("the same, at most 30 requests a second", asked.limited, [*run, path], env)
        ideal = f"{row.note}; ideal {asked.limited / 30:.1f} s, took {row.seconds:.1f} s"
        print(row._replace(note=ideal).line())
        some = asked.calls // 3
        loop = [sys.executable, "-W", "ignore", "-c", LOOP, api_base, str(IN_FLIGHT), str(some)]
        env |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        print(timed("reference: a bare loop over litellm", some, loop, env).line())


if __name__ == "__main__":
    main()
