"""Benches with code and plug-ins: what is read, refused and stored, before any worker sees it."""

import json
from hashlib import sha256
from importlib.metadata import EntryPoint
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
import yaml

from producer.cases import bench_code
from producer.cases.load import PlannedRun, plan_run
from producer.cli.plugins_view import check_plugins
from producer.load.source import Source
from producer.options import CaseChoice
from shared import plugins
from shared.clock import now_ms
from shared.code.code_file import CodeFile
from shared.code.code_process import CodeFailedError, typescript_options
from shared.codecs.parked_items import WaitReason
from shared.contracts import code_config
from shared.contracts.checks import Check
from shared.errors import InputError
from shared.runs.waiting import describe_parked
from tests.support.benches import MINIMAL
from tests.support.eventually import eventually
from worker.executors.cases import CasesEngine
from worker.executors.run_needs import ELSEWHERE_WAIT_MS, NOWHERE_WAIT_MS, RunNeeds
from worker.outcomes import Deferred
from worker.validation.checks import plugin
from worker.validation.checks.kind import Score, Subject
from worker.validation.checks.table import CHECK_KINDS

MADE: Final = """
def ask(context):
    return "Capital of " + context["vars"]["country"] + context["config"].get("end", "")

def chat(context):
    return [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]

def cases(config):
    return [{"country": name, "checks": ["json"]} for name in config["names"]]

def more(config):
    yield from cases(config)

def foreign():
    return [{"vars": {"country": "Peru"}, "assert": [{"type": "is-json"}]}]

def wrong(context):
    raise KeyError("country")
"""


def plan(folder: Path, *, allow_code: bool = True, **more: Any) -> PlannedRun:
    """Plans a run of a bench beside a file of code."""
    (folder / "made.py").write_text(MADE)
    (folder / "app.py").write_text("def call_api(prompt): return prompt")
    path = folder / "bench.yaml"
    path.write_text(yaml.safe_dump({**MINIMAL, **more}))
    return plan_run(Source(path), CaseChoice(allow_code=allow_code))


def test_typescript_is_run_by_node_or_by_tsx(tmp_path: Path) -> None:
    """Where neither can, one line says what is missing."""
    (tmp_path / "node").write_text("#!/bin/sh\necho v20.1.0\n")
    (tmp_path / "node").chmod(0o700)
    with pytest.raises(
        CodeFailedError, match=r"ask\.ts: TypeScript is run by node 22\.18 or later, or by tsx"
    ):
        typescript_options("ask.ts", tmp_path, str(tmp_path / "node"))
    (tmp_path / "node_modules" / "tsx").mkdir(parents=True)
    assert typescript_options("ask.ts", tmp_path, str(tmp_path / "node")) == ["--import", "tsx"]
    assert code_config.Code(javascript="ask.ts:one").named == ("javascript", "ask.ts", "one")


def test_code_runs_where_it_was_read_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    file = (
        plan(tmp_path, models=[{"name": "app", "python": "app.py"}], test_cases=[{"input": "Hi"}])
        .run.models["app"]
        .code
    )
    assert file is not None
    assert file.beside == tmp_path
    (tmp_path / "app.py").write_text("changed")
    assert file.beside is None


def test_code_that_judges_is_asked_by_its_own_check(tmp_path: Path) -> None:
    """It is no judge, and answers no prompts."""
    own = {"own": {"python": "app.py", "role": "check"}}
    asked: dict[str, Any] = {
        "default_checks": [{"verdict": None, "model": "own"}],
        "test_cases": [{"input": "Hi"}],
    }
    run = plan(tmp_path, model_configs=own, **asked).run
    assert [name for name, target in run.check_models.items() if target.is_free] == ["own"]

    asked["default_checks"] = [{"rubric": "kind", "model": "own"}]
    wrong = refusal(tmp_path, model_configs=own, **asked)
    assert "rubric: 'own' has role: check, and is no judge" in wrong
    asked["default_checks"] = [{"verdict": "f", "model": "gpt-4o"}]
    wrong = refusal(tmp_path, **asked)
    assert "verdict: 'gpt-4o' is no code with role: check" in wrong
    assert "only code has a role" in refusal(tmp_path, model_configs={"m": {"role": "check"}})
    wrong = refusal(tmp_path, models=[{"name": "m", "python": "app.py", "role": "check"}])
    assert "code with a role stands in model_configs" in wrong


def refusal(folder: Path, **more: Any) -> str:
    with pytest.raises(InputError) as refused:
        plan(folder, **more)
    return f"{refused.value.message}; {refused.value.hint}".removeprefix(str(folder))


def test_prompts_and_cases_are_made_at_submit(tmp_path: Path) -> None:
    """By functions of one file; a message of the system is the system's, and models get every variable."""
    found = plan(
        tmp_path,
        models=["m", {"name": "own", "python": "app.py", "env": ["A_TOKEN"], "config": {"k": 1}}],
        prompts=[{"python": "made.py:ask", "config": {"end": "?"}}, {"id": "c", "python": "made.py:chat"}],
        test_cases_file=[
            {"python": "made.py:cases", "config": {"names": ["France"]}},
            {"python": "made.py:more", "config": {"names": ["Peru"]}},
        ],
        test_cases=[{"vars": {"country": "Chad"}}],
    )
    items = list(found.items())
    assert [item.input for item in items[:6]] == [
        *("Capital of France?", "Capital of Peru?", "Capital of Chad?"),
        *("Hi", "Hi", "Hi"),
    ]
    assert items[0].prompt_id == "ask"
    assert items[3].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    ]
    assert (items[3].system, [check.check for check in items[0].checks]) == ("", ["json"])
    target = found.run.models["own"]
    assert target.code is not None
    digest = sha256(target.code.source.encode()).hexdigest()
    assert (target.code.sha256, target.code.env, target.config) == (digest, ["A_TOKEN"], {"k": 1})
    assert target.api_base == f"python:app.py#{digest[:8]}"
    assert target.place["called"].startswith(digest)


def test_prompts_are_made_for_each_model(tmp_path: Path) -> None:
    """A function is told which; prompts without one are shared, and results keep their order."""
    (tmp_path / "who.py").write_text("def ask(context): return ' '.join(context['provider'].values())")
    found = plan(
        tmp_path,
        models=["a", {"name": "b", "python": "app.py"}],
        prompts=[{"id": "p", "user": "Hi"}, {"python": "who.py"}],
        test_cases=[{"id": "1"}, {"id": "2"}],
    )
    assert [(item.model, item.input) for item in found.items()] == [
        *[("a", "Hi")] * 2,
        *[("a", "a a")] * 2,
        *[("b", "Hi")] * 2,
        *[("b", "b b")] * 2,
    ]
    assert (found.total, len(found.asked), found.facts.cases) == (8, 6, 2)


def test_code_needs_permission_before_it_is_read(tmp_path: Path) -> None:
    """One line names all of it, and nothing was executed."""
    marker = tmp_path / "executed"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')")
    prompts = [{"python": "evil.py"}, {"javascript": "evil.js"}]
    found = refusal(tmp_path, prompts=prompts, models=[{"name": "m", "python": "evil.py"}], allow_code=False)
    assert found == (
        "/bench.yaml:1: 'evil.py', 'evil.js' are code beside the bench, which runs only with --allow-code; "
        "it may do whatever you may do: read it first, then add --allow-code"
    )
    assert not marker.exists()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"prompts": [{"python": "made.py:wrong"}]}, "made.py: KeyError: 'country'"),
        (
            {"prompts": [{"python": "made.py:nosuch"}]},
            "made.py: no function nosuch: it has ask, chat, cases, more, foreign, wrong; made.py:ask",
        ),
        ({"prompts": [{"python": "made.py"}]}, "no function create_prompt"),
        ({"prompts": [{"python": "../made.py"}]}, "leads out of the folder"),
        ({"prompts": [{"python": "made.txt"}]}, "no python file ('made.txt'); write provider.py, or"),
        ({"prompts": [{"python": "made.py:ask", "user": "Hi"}]}, "code makes the prompt"),
        ({"prompts": [{"user": "Hi", "env": ["A"]}]}, "env is for code"),
        ({"prompts": [{"plugin": "nosuch"}]}, "no plug-in 'nosuch' of proctor.prompts is installed here"),
        ({"test_cases_file": {"python": "made.py:ask"}}, "made.py: "),
        (
            {"test_cases_file": {"python": "made.py:foreign"}},
            "made.py[0]: assert is a key of promptfoo's tests; add returns: promptfoo beside python",
        ),
        (
            {"models": [{"name": "m", "python": "app.py", "env": ["PROCTOR_REDIS_URL"]}]},
            "not the name of a var",
        ),
        ({"models": [{"name": "m", "python": "app.py", "javascript": "a.js"}]}, "both stand here"),
        ({"models": [{"name": "m", "python": "app.py", "api_base": "http://h"}]}, "there is api_base too"),
        ({"models": [{"name": "m", "python": "app.py"}, "m"]}, "m is configured twice"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    """Whether the contract, the file or the function is wrong."""
    cases = {} if "test_cases_file" in more else {"test_cases": [{"vars": {"country": "Peru"}}]}
    prompts = {} if "models" in more or "prompts" in more else {"prompts": ["Hi"]}
    assert words in refusal(tmp_path, **{**cases, **prompts, **more})


def test_a_prompt_that_hangs_is_waited_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for each case."""
    monkeypatch.setattr(bench_code, "PROMPT_S", 0.3)
    (tmp_path / "hang.py").write_text("import time\ndef ask(context): time.sleep(60)")
    found = refusal(tmp_path, prompts=[{"python": "hang.py"}], test_cases=[{"id": f"{n}"} for n in range(50)])
    assert "hang.py did not return in 0.3 s" in found


def polite(output: str, argument: Any, context: dict[str, Any]) -> tuple[bool, str]:
    """A check of a package."""
    context["vars"].clear()  # what it is given is its own
    return output == argument, f"{argument} is wanted"


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with one check."""
    point = EntryPoint("polite", f"{__name__}:polite", "proctor.checks")
    monkeypatch.setattr(plugins, "_entry_points", lambda: {"checks:polite": point})
    monkeypatch.setattr(EntryPoint, "load", lambda _self: polite)


@pytest.mark.usefixtures("package")
def test_an_installed_check_scores(tmp_path: Path) -> None:
    """With the options of all checks; its result is that of a function."""
    subject = Subject("Hi", vars={"a": 1})
    run = CHECK_KINDS["plugin.polite"].run
    assert run is not None
    assert run(Check("plugin.polite", "Hi"), subject)[:2] == (1.0, "Hi is wanted")
    assert run(Check("plugin.polite", "Ho"), subject).value == 0
    assert subject.vars == {"a": 1}
    checks = [{"plugin.polite": "{{ word }}", "weight": 2}, {"not": {"plugin.polite": "x"}}, "plugin.polite"]
    found = plan(tmp_path, test_cases=[{"input": "Hi", "vars": {"word": "yes"}, "checks": checks}])
    [item] = found.items()
    assert [check.argument for check in item.checks] == ["yes", None, None]
    assert found.run.plugins == ["checks:polite"]
    assert not found.warnings


def test_a_missing_plugin_is_told(tmp_path: Path) -> None:
    """At submit and by the worker that lacks it, whose items wait for another one."""
    bench: dict[str, Any] = {"models": [{"name": "m", "plugin": "mine"}], "test_cases": [{"input": "Hi"}]}
    found = plan(tmp_path, default_checks=[{"plugin.rude": 1}], **bench)
    assert found.run.plugins == ["checks:rude", "clients:mine"]
    [warning] = found.warnings
    assert warning.startswith("the plug-in checks:rude, clients:mine is not installed here")
    unused: Any = None
    engine = CasesEngine(
        "r",
        found.run,
        *(unused, unused, unused),
        earlier=unused,
        images=unused,
        shared_vars={},
        packing=unused,
        outcomes=unused,
        needs=RunNeeds(found.run.plugins, allow_code=False, others=list),
    )
    with pytest.raises(Deferred) as later:
        engine.process(unused).send(None)
    assert later.value.reason is WaitReason.PLUGIN
    waits = "waiting for a worker that has the plug-in checks:rude, clients:mine"
    assert describe_parked([later.value.state]) == waits


@pytest.mark.parametrize(
    ("more", "needs"),
    [
        ({"models": [{"name": "own", "python": "app.py"}]}, ["--allow-code"]),
        ({"judge_model": "own"}, ["--allow-code"]),
        (
            {"test_cases": [{"input": "Hi", "checks": [{"rubric": "Kind.", "model": "own"}]}]},
            ["--allow-code"],
        ),
        ({"prompts": [{"python": "made.py:chat"}], "test_cases": [{}]}, []),
    ],
)
def test_a_run_names_the_permission_that_workers_need(
    tmp_path: Path, more: dict[str, Any], needs: list[str]
) -> None:
    """For models, judges and models of checks; prompts are made by the command that submits."""
    usual: dict[str, Any] = {"model_configs": {} if "models" in more else {"own": {"python": "app.py"}}}
    usual |= {"test_cases": [{"input": "Hi"}]}
    assert plan(tmp_path, **usual | more).run.plugins == needs


def test_what_another_worker_has_is_left_to_it_soon() -> None:
    """Its items are tried again shortly while such a worker lives, whatever it lacks here."""
    here, fleet = ["checks:a", "--allow-code"], [frozenset({"checks:a"})]
    needs = RunNeeds(here, allow_code=False, others=lambda: fleet)

    def waits_ms() -> int:
        needs.look()
        with pytest.raises(Deferred, match="has the plug-in checks:a and may run code") as later:
            needs.check()
        return later.value.due_ms - now_ms()

    assert waits_ms() > ELSEWHERE_WAIT_MS
    fleet.append(frozenset({"checks:a", "--allow-code", "checks:b"}))
    assert waits_ms() <= ELSEWHERE_WAIT_MS < NOWHERE_WAIT_MS
    RunNeeds(["--allow-code"], allow_code=True, others=list).check()


@pytest.mark.usefixtures("package")
def test_a_check_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """After its time; when several calls hang, it is called no further, and it is again when one returns."""
    goes_on = Event()
    run = CHECK_KINDS["plugin.polite"].run
    assert run is not None
    monkeypatch.setattr(plugin, "CALL_S", 0.02)
    monkeypatch.setattr(plugins, "load", lambda *_: lambda *_: goes_on.wait(60))
    plugin._calls.clear()
    failed = [run(Check("plugin.polite"), Subject("Hi")) for _ in range(plugin.MOST_CALLS + 1)]
    assert [score.error for score in failed] == ["timeout"] * (plugin.MOST_CALLS + 1)
    assert failed[0].reason == "plug-in polite timed out after 0.02 s"
    assert failed[-1].reason == "plug-in polite was not called: 4 of its calls hang"
    goes_on.set()
    monkeypatch.setattr(plugin, "CALL_S", 60)
    eventually(lambda: _passes(run(Check("plugin.polite"), Subject("Hi"))))


def _passes(score: Score) -> None:
    assert score.value == 1


def test_doctor_names_workers_that_lack_a_plugin() -> None:
    """Prompts are made at submit: no worker needs them."""
    workers = {"w1": frozenset({"checks:a"}), "w2": frozenset({"checks:a", "clients:b"})}
    [found] = check_plugins(frozenset({"checks:a", "prompts:c"}), workers)
    assert (found.status, found.detail) == (
        "warn",
        "checks:a, clients:b, prompts:c; 1 of 2 workers lacks clients:b",
    )
    assert check_plugins(frozenset(), {"w1": frozenset()}) == []
    [found] = check_plugins(frozenset({"proctor[js]"}), {"w1": frozenset()})
    assert found.detail == "proctor[js]; 1 of 1 workers lacks proctor[js]"


def test_messages_may_come_as_json(tmp_path: Path) -> None:
    """As functions for promptfoo return them."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    messages.append({"role": "user", "content": "Hm"})
    (tmp_path / "p.py").write_text(f"import json\ndef ask(context): return json.dumps({messages!r})")
    [item] = plan(tmp_path, prompts=[{"python": "p.py"}], test_cases=[{}]).items()
    assert (item.messages, item.prompt_id) == (messages, "p")
    assert json.loads(json.dumps(item.messages)) == messages


def test_what_code_imports_from_its_folder_travels(tmp_path: Path) -> None:
    """Also what that imports; no file of another folder; its hash is that of all, and too many are none."""
    folder = tmp_path / "bench"
    for name, text in {
        "../outside.js": "",
        "app.py": "import json, lib.words\nfrom tone import kind\ndef call_api(prompt): return kind(prompt)",
        "tone.py": "from lib.words import longest\ndef kind(text): return longest(text)",
        "lib/__init__.py": "",
        "lib/words.py": "from . import more\ndef longest(text): return text",
        "lib/more.py": "this is no Python",
        "unused.py": "",
        "app.js": "const { a } = require('./js/a'); import('../outside.js'); module.exports = a",
        "js/a.js": "export { a } from '../b.mjs'; import data from './data.json'",
        "b.mjs": "export const a = (prompt) => prompt",
        "js/data.json": "{}",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "link.py").symlink_to(tmp_path / "outside.js")
    models = [{"name": "p", "python": "app.py"}, {"name": "j", "javascript": "app.js"}]
    bench = folder / "bench.yaml"
    bench.write_text(yaml.safe_dump({**MINIMAL, "models": models, "test_cases": [{"input": "Hi"}]}))

    def read(model: str) -> CodeFile:
        code = plan_run(Source(bench), CaseChoice(allow_code=True)).run.models[model].code
        assert code is not None
        return code

    before = read("p")
    assert [*before.imported] == ["lib/__init__.py", "lib/more.py", "lib/words.py", "tone.py"]
    assert [*read("j").imported] == ["b.mjs", "js/a.js", "js/data.json"]
    assert before.beside == folder
    (folder / "tone.py").write_text("def kind(text): return text.upper()")
    assert before.beside is None
    assert [*read("p").imported] == ["lib/__init__.py", "lib/more.py", "lib/words.py", "tone.py"]
    assert read("p").sha256 != before.sha256
    (folder / "tone.py").write_text("#" * (1 << 20) + "\nimport lib")
    assert read("p").imported == {}
