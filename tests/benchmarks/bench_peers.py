"""Measures other evaluation tools beside Proctor on the same cases: `make bench-peers`.

Each tool puts 1,000 and 5,000 cases to a model of 50 ms on loopback, 100 at a time and without a cache, and
compares each answer with an expected JSON object. The tools take turns, and the middle one of several runs
counts, from the command to its end, with the CPU of all its processes. promptfoo, Inspect and lm-eval are
installed from their registries into build/peers; one that cannot be installed is named with the reason.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from tests.benchmarks.bench_cases import IN_FLIGHT, LATENCY_S, asked, loop, models_at, run
from tests.benchmarks.bench_queries import api
from tests.benchmarks.process_costs import LAST_CHARS, Costs, measure
from tests.benchmarks.results import Figure, Missing, NotHereError, collect, made_by, sized, write
from tests.support.tree import ROOT

FOLDER: Final = ROOT / "build" / "peers"
OUTPUT: Final = ROOT / "build" / "peers.json"
CASES: Final = (1_000, 5_000)
ROUNDS: Final = 3
INSTALL_S: Final = 1_800.0
PROCTOR: Final = "Proctor"
BOUNDS: Final = {PROCTOR: "CPU and start-up", "bare aiohttp loop": "the model, and start-up"}
BOUND: Final = "CPU of its process"
ANSWER: Final = {"ok": True}
ENV: Final = MappingProxyType({"OPENAI_API_KEY": "k", "PYTHONPATH": ""})

INSPECT_TASK: Final = """
import json
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate

@scorer(metrics=[accuracy()])
def same_json():
    async def score(state, target):
        return Score(value=int(json.loads(state.output.completion) == json.loads(target.text)))
    return score

@task
def cases(count):
    samples = [Sample(input=f"case {number}", target='{"ok": true}') for number in range(count)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=same_json())
"""


class Asked(NamedTuple):
    """What a tool has to do."""

    folder: Path
    """Empty, for its input and output."""
    url: str
    """Of the model's server."""
    cases: int


class Tool(NamedTuple):
    """Something that is measured."""

    name: str
    run: Callable[[Asked], Costs]
    """Puts the cases to the model.

    Raises:
        NotHereError: not every case passed.
    """


class Package(NamedTuple):
    """A peer as its registry has it."""

    name: str
    package: str
    """Its name in its registry."""
    version: str
    program: str
    """Below the folder that it is installed into."""
    command: Callable[[Path, Asked], tuple[Sequence[str | Path], Mapping[str, str]]]
    """Writes the input; returns the command line of the installed program, and its variables."""
    passed: Callable[[Path], float]
    """Reads from a folder with the output which share of the cases passed."""

    def tool(self, root: Path) -> Tool:
        """Installs the peer.

        Raises:
            NotHereError: it cannot be installed.
        """
        folder = root / self.name
        if not (folder / self.program).exists():
            install(self.package, self.version, folder, is_node="node_modules" in self.program)
        return Tool(f"{self.name} {self.version}", partial(self._run, folder / self.program))

    def _run(self, program: Path, asked: Asked) -> Costs:
        command, env = self.command(program, asked)
        costs = measure(command, {**ENV, **env}, asked.folder)
        if costs.exit_code:
            raise NotHereError(f"exit {costs.exit_code}: {costs.output[-LAST_CHARS:]}{costs.errors}".strip())
        if (share := self.passed(asked.folder)) < 1:
            raise NotHereError(f"only {share:.1%} of {asked.cases:,} cases passed")
        return costs


def install(package: str, version: str, folder: Path, *, is_node: bool) -> None:
    """Installs a package with the client of its registry.

    Raises:
        NotHereError: there is no such client, or it fails.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    print(f"  installing {package} {version} …", flush=True)
    if is_node:
        if not (shutil.which("node") and shutil.which("npm")):
            raise NotHereError("needs node and npm on PATH")
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund"]
        _client([*npm, "--prefix", folder, f"{package}@{version}"])
    elif shutil.which("uv"):
        _client(["uv", "venv", "--quiet", "--python", sys.executable, folder])
        uv = ["uv", "pip", "install", "--quiet", "--python", str(folder / "bin" / "python")]
        _client([*uv, f"{package}=={version}"])
    else:
        _client([sys.executable, "-m", "venv", folder])
        _client([folder / "bin" / "python", "-m", "pip", "install", "-qq", f"{package}=={version}"])


def _client(command: Sequence[str | Path]) -> None:
    """Runs a client of a registry."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S)
    if done.returncode:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "it says nothing")
        client = "pip" if "pip" in command else Path(command[0]).name
        message = f"could not be installed from its registry with {client}: {last.strip()}"
        raise NotHereError(message)


def promptfoo(program: Path, asked: Asked) -> tuple[Sequence[str | Path], Mapping[str, str]]:
    """Without a cache, with its database, as people run it."""
    config = {
        "prompts": ["{{question}}"],
        "providers": [{"id": "openai:chat:m", "config": {"apiBaseUrl": f"{asked.url}/v1", "apiKey": "k"}}],
        "defaultTest": {"assert": [{"type": "equals", "value": ANSWER}]},
        "tests": [{"vars": {"question": f"case {number}"}} for number in range(asked.cases)],
    }
    (asked.folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    names = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    env = {f"PROMPTFOO_DISABLE_{name}": "1" for name in names}
    env |= {"PROMPTFOO_CONFIG_DIR": str(asked.folder / "home"), "NODE_NO_WARNINGS": "1"}
    options = ["-c", "config.json", "-j", str(IN_FLIGHT), "-o", "out.json"]
    return [program, "eval", *options, "--no-cache", "--no-progress-bar", "--no-table"], env


def promptfoo_passed(folder: Path) -> float:
    """Reads promptfoo's output."""
    stats = _json(folder / "out.json")["results"]["stats"]
    return float(stats["successes"] / (stats["successes"] + stats["failures"] + stats["errors"]))


def inspect(program: Path, asked: Asked) -> tuple[Sequence[str | Path], Mapping[str, str]]:
    """With as many connections and samples as calls are asked for."""
    (asked.folder / "task.py").write_text(INSPECT_TASK, encoding="utf-8")
    options = ["-T", f"count={asked.cases}", "--model", "openai/gpt-4o", "-M", "responses_api=false"]
    options += ["--max-connections", str(IN_FLIGHT), "--max-samples", str(IN_FLIGHT)]
    options += ["--display", "none", "--log-dir", "logs", "--log-format", "json"]
    return [program, "eval", "task.py", *options], {"OPENAI_BASE_URL": f"{asked.url}/v1"}


def inspect_passed(folder: Path) -> float:
    """Reads Inspect's log."""
    (log,) = (folder / "logs").glob("*.json")
    return float(_json(log)["results"]["scores"][0]["metrics"]["accuracy"]["value"])


def lm_eval(program: Path, asked: Asked) -> tuple[Sequence[str | Path], Mapping[str, str]]:
    """As a task of one prompt; it compares the answer as text."""
    lines = (json.dumps({"question": f"case {number}"}) for number in range(asked.cases))
    questions = asked.folder / "questions.jsonl"
    questions.write_text("\n".join(lines), encoding="utf-8")
    task = {
        "task": "cases",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(questions)}},
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_target": json.dumps(ANSWER),
        "generation_kwargs": {"until": []},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    (asked.folder / "cases.yaml").write_text(json.dumps(task), encoding="utf-8")
    model = (
        f"base_url={asked.url}/v1/chat/completions,model=m,num_concurrent={IN_FLIGHT},tokenizer_backend=None"
    )
    options = ["--model", "local-chat-completions", "--model_args", model, "--tasks", "cases"]
    options += ["--include_path", ".", "--apply_chat_template", "--output_path", "out"]
    env = {"HF_HOME": str(asked.folder / "home"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    return [program, *options], env


def lm_eval_passed(folder: Path) -> float:
    """Reads lm-eval's results."""
    (results,) = (folder / "out").rglob("*.json")
    return float(_json(results)["results"]["cases"]["exact_match,none"])


def _json(path: Path) -> Any:
    return json.loads(path.read_bytes())


PACKAGES: Final = (
    Package("promptfoo", "promptfoo", "0.121.20", "node_modules/.bin/promptfoo", promptfoo, promptfoo_passed),
    Package("Inspect", "inspect-ai", "0.3.285", "bin/inspect", inspect, inspect_passed),
    Package("lm-eval", "lm-eval[api]", "0.4.13", "bin/lm_eval", lm_eval, lm_eval_passed),
)


def proctor(asked_for: Asked) -> Costs:
    """Proctor, as people run it: with its own server and workers."""
    file = asked(asked_for.folder, asked_for.cases, **models_at(asked_for.url))
    return run(asked_for.folder, [file], asked_for.cases)


OURS: Final = (
    Tool(PROCTOR, proctor),
    Tool(
        "bare aiohttp loop",
        lambda each: loop(each.folder, "aiohttp", f"{each.url}/v1/chat/completions", each.cases),
    ),
    Tool("bare litellm loop", lambda each: loop(each.folder, "litellm", f"{each.url}/v1", each.cases)),
)


def measured(scale: float, folder: Path = FOLDER, rounds: int = ROUNDS) -> Iterator[Figure | Missing]:
    """Installs the peers, then measures all tools in turns."""
    tools = list(OURS)
    for package in PACKAGES:
        try:
            tools.append(package.tool(folder))
        except NotHereError as why:
            yield Missing(package.name, str(why))
    with api(0, LATENCY_S) as url:
        for full in CASES:
            yield from in_turns(tools, url, sized(full, scale), rounds)


def in_turns(tools: list[Tool], url: str, count: int, rounds: int) -> Iterator[Figure | Missing]:
    """Measures tools on so many cases; one that fails is left out from then on."""
    costs: dict[str, list[Costs]] = {tool.name: [] for tool in tools}
    for _ in range(rounds):
        for tool in tools[:]:
            with TemporaryDirectory(prefix="bench-peers-") as name:
                try:
                    costs[tool.name].append(tool.run(Asked(Path(name), url, count)))
                except NotHereError as why:
                    tools.remove(tool)
                    yield Missing(tool.name, str(why))
    ours = middle(costs[PROCTOR])
    for tool in tools:
        yield from figures(tool.name, count, middle(costs[tool.name]), ours)


def middle(costs: Sequence[Costs]) -> Costs:
    """The middle figures of several runs."""
    return Costs(
        0,
        median(each.cpu_s for each in costs),
        median(each.peak_mb for each in costs),
        median(each.wall_s for each in costs),
    )


def figures(name: str, count: int, costs: Costs, ours: Costs) -> Iterator[Figure]:
    """What a tool needed, beside what Proctor did."""

    def figure(measure: str, value: float, unit: str, reference: float) -> Figure:
        found = Figure(
            workload="peers",
            parameter=f"{count:,} cases, {name}",
            measure=measure,
            value=value,
            unit=unit,
            bound=BOUNDS.get(name, BOUND),
            series=name,
            size=count,
        )
        return found if name == PROCTOR else found.beside(PROCTOR, reference)

    yield figure("time", costs.wall_s, "s", ours.wall_s)
    yield figure("CPU", 1000 * costs.cpu_s / count, "ms/case", 1000 * ours.cpu_s / count)
    yield figure("memory", costs.peak_mb, "MB", ours.peak_mb)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="bench_peers", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full sizes, 1 by default")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the peers are installed")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT, help="the JSON file")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="the middle one of so many counts")
    given = parser.parse_args()
    bench = partial(measured, folder=given.folder.resolve(), rounds=given.rounds)
    write(collect({"peers": bench}, given.scale, made_by("bench-peers")), given.output)


if __name__ == "__main__":
    main()
