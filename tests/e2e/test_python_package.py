"""`import proctor`: programs of users that run benches, read results and compare them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.support.cli import Cli
from tests.support.processes import marked_processes
from tests.support.tree import ROOT

BENCH = """
import json, proctor
from proctor import Bench, Case, check
bench = Bench("capitals", cases=[
    Case("The capital of France?", id="fr", tags=["north"], checks=[check.contains("Paris")]),
    Case("The capital of Peru?", id="pe", metadata={"year": 1821}, checks=[check.contains("Lima")]),
])
def answer(text):
    return "It is Paris." if "France" in text else "It is Cusco."
"""

Script = Callable[..., Any]


@pytest.fixture
def script(cli: Cli, tmp_path: Path) -> Script:
    """Runs a program in a folder of its own, with the bench above, and returns the JSON that it prints."""
    project = tmp_path / "project"
    project.mkdir()

    def run(text: str, *, path: str = str(ROOT), before: str = BENCH) -> Any:
        file = project / "program.py"
        file.write_text(before + dedent(text), encoding="utf-8")
        env = {**cli.processes.env, "PYTHONPATH": path, "PROCTOR_PROCESSES": "1"}
        process = cli.processes.start(sys.executable, str(file), cwd=project, env=env, new_session=True)
        code = process.wait(40)
        assert code == 0, process.errors
        return json.loads(process.output)

    return run


def test_a_function_is_evaluated_by_workers(script: Script) -> None:
    """Rows have the function's answers, tables the rows; `for` and `async for` give the same events."""
    found = script("""
        import asyncio
        events = []
        run = proctor.run(bench, app=answer, on_event=events.append)
        rows = [[r.case_id, r.model, r.outcome, r.output, r.reason, r.tags] for r in run.rows]
        rows[0].append(next(run.rows).checks[0].passed)
        told = [run.verdict, run.state, run.pass_rate, run.cost_usd, dict(run.counts), rows, str(run)]
        again = [event.name for event in proctor.watch(run)]
        async def main():
            return [event.name async for event in proctor.watch(run.id)]
        names = [events[0].name, events[-1].name, again, asyncio.run(main())]
        told.append([events[-1].done, events[-1].total])
        one, other = run.to_pandas(), run.to_polars()
        tables = [
            list(one.columns) == list(other.columns), one.shape == other.shape,
            list(one["outcome"]), other["case_id"].to_list(), list(one["tags"])[0], "score" in one,
        ]
        print(json.dumps([told, names, tables], default=list))
    """)
    (verdict, state, rate, cost, counts, rows, text, ended), (first, last, again, awaited), tables = found
    assert (verdict, state, rate, cost) == ("failed", "finished", 0.5, 0)
    assert (counts["total"], counts["failed"], ended) == (2, 1, [2, 2])
    assert rows[0] == ["fr", "answer", "passed", "It is Paris.", "", ["north"], True]
    assert rows[1][:4] == ["pe", "answer", "failed", "It is Cusco."]
    assert '"Lima" is nowhere' in rows[1][4]
    assert text.endswith(": 1 of 2 passed, 1 failed")
    assert (first, last, again[-1], again) == ("loading", "finished", "finished", awaited)
    assert tables == [True, True, ["passed", "failed"], ["fr", "pe"], "north", True]


def test_functions_check_answers_as_judges_do(script: Script) -> None:
    """A bool, a score with a reason of a coroutine that sees the case, and an exception."""
    found = script("""
        def short(output):
            return len(output) < 20
        async def asked(output, answer):
            if "Lima" in output:
                raise ValueError("no such table")
            return 0.9 if answer.input.endswith("?") and output == answer.output else 0, "by the input"
        def row(check): return [check.name, check.passed, check.score, check.reason]
        async def both(messages):
            yield "Paris" if "France" in messages[-1]["content"] else "Lima"
        run = proctor.run(bench, app=both, checks=[short, asked], stream=True)
        print(json.dumps([[r.outcome, r.reason, [row(check) for check in r.checks]] for r in run.rows]))
    """)
    (outcome, _, checks), (second, reason, _) = found
    assert outcome == "passed"
    assert [check[:3] for check in checks[:2]] == [["short", True, 1.0], ["asked", True, 0.9]]
    assert "by the input" in checks[1][3]
    assert second == "error"
    assert "no such table" in reason


def test_functions_of_one_name_are_checks_of_their_own(script: Script) -> None:
    """Two lambdas are told apart, and a file's cases are put to a function too."""
    found = script("""
        from pathlib import Path
        checks = [lambda output: "Paris" in output, lambda output: len(output) > 99]
        run = proctor.run(bench, app=answer, checks=checks)
        first = [[check.name, check.passed] for check in next(run.rows).checks]
        file = {"name": "b", "system_prompt": "p", "models": ["other"]}
        file["test_cases"] = [{"input": "Paris", "checks": [{"equals": "PARIS"}]}]
        Path("bench.yaml").write_text(json.dumps(file))
        from_file = proctor.run("bench.yaml", app=str.upper, no_cache=False)
        try:
            proctor.run("bench.yaml", app=answer, checks=checks)
        except TypeError as error:
            refused = str(error)
        print(json.dumps([first, from_file.verdict, [row.model for row in from_file.rows], refused]))
    """)
    assert found == [
        [["<lambda>", True], ["<lambda> 2", False], ["contains: Paris", True]],
        "passed",
        ["upper"],
        "checks= need a Bench or its content as a mapping, not the path bench.yaml",
    ]


def test_gates_and_comparisons_are_those_of_the_program(script: Script) -> None:
    """A requirement that does not hold raises with its figures; B is compared with the run before it."""
    found = script("""
        first = proctor.run(bench, app=answer)
        first.assert_gate("pass_rate>=0.5", "error_rate < 1%")
        missed = []
        for requirement in ("pass_rate>=0.9", "pass_rate"):
            try:
                first.assert_gate(requirement)
            except (proctor.GateError, ValueError) as error:
                missed.append([type(error).__name__, str(error)])
        second = proctor.run(bench, app=lambda text: "Paris, Lima", name="better")
        compared = second.compare(first)
        listed = [run.id for run in proctor.runs()]
        is_listed = listed == [second.id, first.id]
        shown = [repr(compared), repr(next(first.rows))]
        print(json.dumps([missed, dict(compared.counts), compared.is_regression, is_listed, shown]))
    """)
    missed, counts, is_regression, is_listed, shown = found
    assert shown == [
        "Comparison('no significant difference: 0 broken, 1 fixed of 2')",
        "Row('case-0', outcome='passed', output='It is Paris.')",
    ]
    assert missed[0][0] == "GateError"
    assert "pass rate 50.0%, at least 90% needed" in missed[0][1]
    assert missed[1][0] == "ValueError"
    assert (counts["broken"], is_regression, is_listed) == (0, False, True)


def test_a_refused_bench_raises_with_place_and_hint(script: Script) -> None:
    """What the program refuses is an exception with its message, hint, code and exit code."""
    found = script("""
        try:
            proctor.run(Bench("b", cases=[Case("Hi", checks=[{"contans": "x"}])]), app=answer)
        except proctor.ProctorError as error:
            print(json.dumps([error.message, error.hint, error.code, error.exit_code]))
    """)
    assert found == [
        "the bench: test_cases[0].checks[0]: unknown check 'contans'",
        "did you mean 'contains'?",
        "input",
        2,
    ]


def test_what_is_left_early_is_stopped(script: Script) -> None:
    """A loop over events that is left interrupts the program: no worker stays, and the run is kept."""
    found = script("""
        import time
        def slow(text):
            time.sleep(0.2)
            return text
        many = Bench("many", cases=[Case(f"Say {n}") for n in range(200)])
        from proctor.app import served
        try:
            proctor.run(many, app=slow, concurrency=2, on_event=lambda event: 1 / (event.name != "progress"))
        except ZeroDivisionError:
            pass
        [run] = proctor.runs()
        print(json.dumps([run.state, run.counts["total"]]))
    """)
    assert found[0] != "finished"
    assert found[1] == 200
    assert not [each for each in marked_processes() if "worker" in " ".join(each.cmdline())]


def test_an_asynchronous_watch_can_be_cancelled(script: Script) -> None:
    """It ends at once, the process that it started is gone, and the run goes on, without a verdict."""
    found = script("""
        import asyncio
        run = proctor.submit({**bench.document(), "models": ["m"]}, api_base="http://127.0.0.1:9/v1")
        async def main():
            begun, seen = asyncio.Event(), []
            async def consume():
                async for event in proctor.watch(run):
                    seen.append(event.name)
                    begun.set()
            watching = asyncio.create_task(consume())
            await begun.wait()
            watching.cancel()
            [ended] = await asyncio.gather(watching, return_exceptions=True)
            return [type(ended).__name__, seen[-1] != "finished"]
        print(json.dumps([*asyncio.run(main()), run.state, run.verdict]))
    """)
    assert found == ["CancelledError", True, "running", None]
    assert not [each for each in marked_processes() if "watch" in each.cmdline()]


def test_a_project_may_have_packages_of_the_same_names(script: Script, tmp_path: Path) -> None:
    """A project with `shared`, `worker` and `producer` of its own imports these, and runs work."""
    project = tmp_path / "project"
    for name in ("shared", "worker", "producer"):
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(f"from os import path as {name}_path\n", encoding="utf-8")
    found = script(
        """
        import shared, worker, producer
        run = proctor.run(bench, app=answer)
        mine = [vars(module).get(f"{module.__name__}_path") for module in (shared, worker, producer)]
        print(json.dumps([all(mine), run.counts["passed"]]))
        """,
        path=f"{project}:{ROOT}",
    )
    assert found == [True, 1]


def test_importing_the_package_is_cheap(script: Script) -> None:
    """Nothing of the program or beyond the standard library is imported, and of that only what is used."""
    text = (
        "import sys, json, proctor; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    modules = set(script(text, before=""))
    assert not modules & {
        "shared",
        "worker",
        "producer",
        "pydantic",
        "asyncio",
        "msgspec",
        "redis",
        "click",
        "http",
        "secrets",
        "uuid",
    }
