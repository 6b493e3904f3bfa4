"""The runs whose every document and screen is kept: each example, and runs that are awkward to report."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.tree import ROOT

FORMATS: Final = ("md", "json", "jsonl", "csv", "html", "xml")
HOSTILE: Final = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>"
    "{{ 7 * 7 }}\x1b[2J\u202e\u2028|`*_[a](javascript:1)\n=cmd()|,\"'&lt;b&gt; 😀 e\u0301"
)
BARE: Final = {
    "name": "Bench",
    "system_prompt": "Answer.",
    "models": ["alpha", "beta"],
    "config": {"judge_model": None},
}


@dataclass(frozen=True, slots=True)
class Scene:
    """A run and what is looked at.

    Attributes:
        name: of the folder of its golden files.
        command: what follows `proctor run`; `$API` and `$MODELS` are the sample API's addresses.
        files: what stands in the folder in which it runs, by name.
        item: what `show` shows.
        recorded: whether the answers that the sample API gives are recorded first, and then judged.
        is_timed: whether a real API answers, so that the order of what is far down in a page may differ.
        after: further commands, each with its arguments.
    """

    name: str
    command: tuple[str, ...]
    item: str
    files: dict[str, str] = field(default_factory=dict)
    recorded: bool = False
    is_timed: bool = False
    after: tuple[tuple[str, ...], ...] = ()


def _lines(*values: object) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def _example(name: str) -> str:
    return str(ROOT / "examples" / name)


def _recorded(
    name: str, example: str, *more: str, item: str, after: tuple[tuple[str, ...], ...] = ()
) -> Scene:
    """A packaged bench whose answers are recorded first, so that they take the same time in each run."""
    files = {example: (ROOT / "examples" / example).read_text(encoding="utf-8")}
    validators = (ROOT / "examples" / "validators.py").read_text(encoding="utf-8")
    files |= {"validators.py": validators}
    return Scene(name, (example, *more), item, files, recorded=True, after=after)


def _judged(name: str, bench: dict[str, object], answers: dict[str, str], *more: str, item: str) -> Scene:
    """A run over recorded answers: nothing is called, so that each text is as it was written."""
    cases = bench["test_cases"]
    assert isinstance(cases, list)
    outputs = [
        {
            "case": case["id"],
            "model": model,
            "output": answers.get(f"{case['id']} {model}", answers["*"]),
            "latency_seconds": 0.25 * (1 + number % 5),
            "cost_usd": 0.0001 * len(model),
            "prompt_tokens": 10,
            "completion_tokens": 20 + number,
        }
        for number, case in enumerate(cases)
        for model in ("alpha", "beta")
    ]
    files = {"bench.json": json.dumps(BARE | bench), "answers.jsonl": _lines(*outputs)}
    return Scene(name, ("bench.json", "--outputs", "answers.jsonl", *more), item, files)


SCENES: Final = (
    Scene("turns", (_example("turns.jsonl"), "--name", "Turns"), "0"),
    Scene(
        "queries",
        (_example("copilot/data/evaluation_baselines.json"), "--api-url", "$API"),
        "Q-06",
        is_timed=True,
    ),
    _recorded("bench", "bench.config.yaml", "--api-base", "$MODELS", item="case 1"),
    _recorded(
        "prompts",
        "prompts.yaml",
        "--fail-on",
        "pass_rate<0.9",
        item="spain",
        after=(("compare", "last", "--by", "prompt"), ("compare", "last", "--by", "model")),
    ),
    _recorded("freeform", "freeform.yaml", "--api-base", "$MODELS", item="case 1"),
    _recorded("capitals", "capitals.yaml", "--case", "brazil", "--case", "egypt", item="brazil"),
    _judged(
        "hostile",
        {
            "name": f"Name {HOSTILE}",
            "test_cases": [
                {"id": "plain", "input": HOSTILE, "expected": {"a": [1, HOSTILE]}, "tags": [HOSTILE[:20]]},
                {"id": "spaced id ·", "input": "x", "checks": [{"contains": HOSTILE}, {"length": 3}]},
            ],
        },
        {"*": HOSTILE, "plain beta": json.dumps({"a": [1, HOSTILE]})},
        item="plain",
    ),
    _judged(
        "nothing_passed",
        {
            "name": "Nothing",
            "test_cases": [{"id": f"c{n}", "input": "x", "expected": {"n": n}} for n in range(4)],
        },
        {"*": "no JSON at all", "c1 beta": '{"n": 7}', "c2 beta": ""},
        item="c1",
    ),
    _judged(
        "one_item",
        {
            "name": "One",
            "models": ["alpha"],
            "test_cases": [{"id": "only", "input": "x", "expected": {"n": 1}}],
        },
        {"*": '{"n": 1}'},
        item="only",
    ),
    _judged(
        "labels",
        {
            "name": "Labels",
            "test_cases": [
                {"id": f"c{n}", "input": "x", "checks": [{"contains": "a"}], "label": ("fail", "pass")[n % 2]}
                for n in range(6)
            ],
        },
        {"*": "an answer", "c1 alpha": "other", "c2 beta": "???"},
        item="c1",
    ),
    _judged(
        "many",
        {
            "name": "Many",
            "test_cases": [
                {"id": f"c{n}", "input": f"question {n}", "expected": {"n": n % 7}, "tags": [f"t{n % 3}"]}
                for n in range(1000)
            ],
        },
        {"*": '{"n": 3}', "c5 beta": "prose"},
        item="c5",
    ),
    Scene(
        "aborted",
        ("bench.json", "--api-base", "http://127.0.0.1:9/v1"),
        "case 1",
        {
            "bench.json": json.dumps(
                BARE | {"models": ["none"], "test_cases": [{"input": "x", "expected": {"n": 1}}]}
            )
        },
    ),
)
"""Those of examples call the sample API, the others judge recorded answers."""


def write_files(scene: Scene, folder: Path, api: str) -> None:
    """Puts the files of a scene into the folder in which it runs, with the address of the sample API."""
    for name, text in scene.files.items():
        (folder / name).write_text(text.replace("http://localhost:3000", api), encoding="utf-8")


def as_recorded(rows: str) -> str:
    """Makes recorded answers of a run's JSON Lines, each of which took a time that depends on its place."""
    results = [json.loads(line)["result"] for line in rows.rstrip("\n").split("\n")]
    return _lines(
        *(
            {
                "case": result["case_index"],
                "model": result["model"],
                "prompt": result.get("prompt_id"),
                "output": result["raw_output"],
                "tool_calls": result.get("tool_calls"),
                "latency_seconds": 0.125 * (1 + place % 9),
                "cost_usd": 0.001 * (1 + place % 4),
                "prompt_tokens": 100 + place,
                "completion_tokens": 10 + place,
            }
            for place, result in enumerate(results)
        )
    )
