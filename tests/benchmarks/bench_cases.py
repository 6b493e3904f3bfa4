"""Measures test cases through the whole program: recorded answers, a model of 50 ms, a limit of requests.

Each run is one `proctor run` in a data folder of its own, from the command to its end; CPU is that of all its
processes, the server included. Rates are compared with the ideal of what waits, CPU with bare loops.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final

import msgspec

from tests.benchmarks import bare_loops
from tests.benchmarks.bench_queries import api
from tests.benchmarks.process_costs import Costs, measure, proctor
from tests.benchmarks.results import Figure, sized

LATENCY_S: Final = 0.05
IN_FLIGHT: Final = 100
RECORDED: Final = 5_000
MANY: Final = 100_000
"""The most cases that a run may have."""
CASES: Final = (1_000, 5_000)
NAMED: Final = 1_000
LIMITED: Final = 300
LIMIT: Final = 30
"""Requests a second."""
CONFIG: Final = MappingProxyType({"judge_model": None, "concurrency": IN_FLIGHT, "cache": False})
NAMED_MODEL: Final = "openai/m"
IDEAL: Final = "ideal rate"
READING: Final = "bare loop over the answers"
AIOHTTP: Final = "bare aiohttp loop"
LITELLM: Final = "bare litellm loop"
CORES: Final = "CPU: command, workers and server share the cores"
WAITS: Final = f"{IN_FLIGHT} calls of {1000 * LATENCY_S:.0f} ms at a time; start-up and CPU"


def measured(scale: float) -> Iterator[Figure]:
    """Measures everything, each reference before what is compared with it."""
    with TemporaryDirectory(prefix="bench-") as name, api(0, LATENCY_S) as url:
        folder = Path(name)
        yield from measured_recorded(folder, scale)
        yield from measured_calls(folder, url, scale)
        yield from measured_limit(folder, url, sized(LIMITED, scale))


def measured_recorded(folder: Path, scale: float) -> Iterator[Figure]:
    """Measures cases whose answers are in a file."""
    for name, write, full in (
        ("all stages", recorded, RECORDED),
        ("no check", recorded_unchecked, MANY),
        ("five checks", recorded_checks, MANY),
    ):
        count = sized(full, scale)
        files = write(folder, count)
        looped = measure([*bare_loops.COMMAND, "answers", files[-1]], bare_loops.ENV, folder)
        yield cpu(f"{READING}: {name}", looped, count, "JSON")
        costs = run(folder, files, count)
        parameter = f"{count:,} recorded answers, {name}"
        yield rate(parameter, costs, count, CORES).beside(READING, count / looped.wall_s)
        yield cpu(parameter, costs, count, CORES).beside(READING, looped.cpu_s / count * 1000)


def measured_calls(folder: Path, url: str, scale: float) -> Iterator[Figure]:
    """Measures cases that call a model, over HTTP directly and through litellm."""
    ideal, used = IN_FLIGHT / LATENCY_S, list[tuple[int, float, float]]()
    for full in CASES:
        count = sized(full, scale)
        looped = loop(folder, "aiohttp", f"{url}/v1/chat/completions", count)
        yield cpu(f"{AIOHTTP}, {count:,} calls", looped, count, "CPU of one core")
        costs = run(folder, [asked(folder, count, **models_at(url))], count)
        parameter = f"{count:,} cases, a model of 50 ms"
        yield rate(parameter, costs, count, WAITS).beside(IDEAL, ideal)
        yield cpu(parameter, costs, count, WAITS).beside(AIOHTTP, looped.cpu_s / count * 1000)
        used.append((count, costs.cpu_s, looped.cpu_s))
    (few, little, least), (many, much, most) = used
    each = Costs(0, much - little, 0.0, 0.0)
    parameter = f"each case between {few:,} and {many:,}"
    yield cpu(parameter, each, many - few, "CPU").beside(AIOHTTP, (most - least) / (many - few) * 1000)
    count = sized(NAMED, scale)
    looped = loop(folder, "litellm", f"{url}/v1", count)
    yield rate(f"{LITELLM}, {count:,} calls", looped, count, "CPU of one core")
    yield cpu(f"{LITELLM}, {count:,} calls", looped, count, "CPU of one core")
    env = {"OPENAI_API_BASE": f"{url}/v1", "OPENAI_API_KEY": "k", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    file = asked(folder, count, models=[NAMED_MODEL], config=dict(CONFIG))
    costs = run(folder, [file], count, env=env)
    parameter = f"{count:,} cases, a named model (litellm)"
    yield rate(parameter, costs, count, CORES).beside(LITELLM, count / looped.wall_s)
    yield cpu(parameter, costs, count, CORES).beside(LITELLM, looped.cpu_s / count * 1000)


def measured_limit(folder: Path, url: str, count: int) -> Iterator[Figure]:
    """Measures cases under a limit of requests."""
    with TemporaryDirectory(dir=folder) as data:
        proctor(["limits", "set", "m", "--rpm", str(60 * LIMIT), "-q"], Path(data))
        costs = run(folder, [asked(folder, count, **models_at(url))], count, data=Path(data))
    parameter = f"{count:,} cases, at most {LIMIT} requests a second"
    yield rate(parameter, costs, count, "the limit; start-up").beside(IDEAL, LIMIT)


def rate(parameter: str, costs: Costs, count: int, bound: str) -> Figure:
    """How many cases a second."""
    value = count / costs.wall_s
    return Figure(
        workload="cases",
        parameter=parameter,
        measure="rate",
        value=value,
        unit="cases/s",
        bound=bound,
    )


def cpu(parameter: str, costs: Costs, count: int, bound: str) -> Figure:
    """What a case costs."""
    value = 1000 * costs.cpu_s / count
    return Figure(
        workload="cases",
        parameter=parameter,
        measure="CPU",
        value=value,
        unit="ms/case",
        bound=bound,
    )


def run(
    folder: Path,
    arguments: Sequence[str | Path],
    count: int,
    *,
    data: Path | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Costs:
    """One `proctor run`, in a data folder of its own if none is given; every case has an answer."""
    with TemporaryDirectory(dir=folder) as own:
        costs = proctor(["run", "-q", "--json", *arguments], data or Path(own), env=env)
    counts = msgspec.json.decode(costs.output)["counts"]
    assert counts["passed"] + counts["failed"] == count, counts
    return costs


def loop(folder: Path, name: str, url: str, count: int) -> Costs:
    """A bare loop over so many calls."""
    costs = measure([*bare_loops.COMMAND, name, url, str(IN_FLIGHT), str(count)], bare_loops.ENV, folder)
    assert not costs.exit_code, costs.errors
    return costs


def models_at(url: str) -> dict[str, Any]:
    """The keys of a bench whose model is at a URL."""
    return {"model_configs": {"m": {"api_base": f"{url}/v1"}}, "config": dict(CONFIG)}


def asked(folder: Path, count: int, **more: Any) -> Path:
    """Writes a bench of cases that are put to a model, which answers all of them rightly."""
    cases = [{"input": f"case {number}", "expected": {"ok": True}} for number in range(count)]
    return bench(folder, cases, **more)


def bench(folder: Path, cases: list[dict[str, Any]], **more: Any) -> Path:
    """Writes a bench with its cases in a file of their own; JSON is YAML."""
    path = folder / f"bench-{len(list(folder.iterdir()))}.yaml"
    data = path.with_suffix(".jsonl")
    data.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    base = {"name": "bench", "system_prompt": "Answer.", "models": ["m"], "test_cases_file": data.name}
    path.write_text(json.dumps({**base, **more}), encoding="utf-8")
    return path


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


def recorded_unchecked(folder: Path, number: int) -> list[str]:
    """Writes cases with recorded answers of which nothing is required."""
    return _with_outputs(folder, number)


def recorded_checks(folder: Path, number: int) -> list[str]:
    """Writes cases with recorded answers and five checks each, two of them templates; each tenth differs."""
    checks = [
        {"contains": "city-{{ n }}"},
        {"not": {"contains": "sorry"}},
        {"json_path": "$.city", "equals": "city-{{ n }}"},
        {"number": 2.1, "tolerance": 0.2, "json_path": "$.millions"},
        {"json_schema": {"type": "object", "required": ["city", "millions"]}},
    ]
    return _with_outputs(folder, number, default_checks=checks)


def _with_outputs(folder: Path, number: int, **more: Any) -> list[str]:
    """Writes a bench, and an answer to each of its cases."""
    cases = [{"id": f"case-{n}", "input": f"case {n}", "vars": {"n": n}} for n in range(number)]
    rows = [
        {
            "case": n,
            "model": "m",
            "output": json.dumps({"city": f"city-{n if n % 10 else -1}", "millions": 2.0}),
        }
        for n in range(number)
    ]
    outputs = folder / "answers.jsonl"
    outputs.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = bench(folder, cases, config={"judge_model": None}, **more)
    return [str(path), "--outputs", str(outputs)]
