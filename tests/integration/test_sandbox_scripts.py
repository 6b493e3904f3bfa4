"""Runs JavaScript in the sandbox: what it may return, what ends it, and that no call notices another."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from producer.forecasts.cases import forecast
from producer.load.source import Source
from producer.options import SubmitOptions
from shared.contracts.checks import Check, Snippet, Transform
from shared.plugins import having, lacking
from worker.sandbox import Sandbox, SandboxError, Sandboxes, SandboxReason, UnusableError
from worker.sandbox.zygote_client import Zygote
from worker.validation.checks import Subject, parse_checks
from worker.validation.scoring import run_deterministic
from worker.validation.script_syntax import script_problems
from worker.validation.transforming import TransformError, transformed

BOMB: Final = "/(a+)+$/.test('a'.repeat(40) + 'b')"


@pytest.fixture(scope="module")
def boxes() -> Iterator[Sandboxes]:
    """Sandboxes with a short deadline."""
    made = Sandboxes(call_s=0.5)
    if made.why_unlocked:
        pytest.skip(f"needs a kernel that locks processes: {made.why_unlocked}")
    yield made
    made.close()


@pytest.fixture
def sandbox(boxes: Sandboxes) -> Iterator[Sandbox]:
    """One batch."""
    with boxes.batch(None) as opened:
        yield opened


def run(sandbox: Sandbox, script: Snippet, output: Any = "Paris", **context: Any) -> Any:
    """Runs a script."""
    return sandbox.script(script, json.dumps({"output": output, "context": context})).value


@pytest.mark.parametrize(
    ("code", "returned"),
    [
        ("output.length", 5),
        (" output.length > 3; ", True),
        ("const n = output.length; n > 3", True),
        ("let s = 'a;b'; s === 'a;b'", True),
        ("const f = o => { const n = 1; return n }; f() === 1;", True),
        ("const f = o => { 1; 2 }", None),
        ("const n = 2;\nreturn n", 2),
        ("if (true) {\n  n = 1;\n}", None),
        ("console.log(output) ?? context.vars.x", "y"),
        ("new Promise(done => done(5))", 5),
        ("(async () => { await null; return output })()", "Paris"),
        ("'ü\\ud800\\0' + output", "ü\ud800\0Paris"),
        ("typeof require + typeof process + typeof fetch + typeof std + typeof os", "undefined" * 5),
        ("JSON.stringify = String.prototype.includes = eval = null, 1", 1),
    ],
)
def test_a_script_is_run_as_promptfoo_runs_it(sandbox: Sandbox, code: str, returned: Any) -> None:
    """One line is an expression, perhaps after declarations; several lines have their own return."""
    assert run(sandbox, Snippet(code), vars={"x": "y"}) == returned


@pytest.mark.parametrize(
    ("code", "function", "returned"),
    [
        ("module.exports = (output, context) => output + context.config.n", "", "Paris1"),
        ("module.exports = {twice: output => output + output}", "twice", "ParisParis"),
        ("exports.default = () => 2", "", 2),
        ("export default function (output) { return output.length }", "", 5),
        ("export const one = () => 1;\nexport async function two() { return 2 }", "two", 2),
    ],
)
def test_a_file_exports_its_function(sandbox: Sandbox, code: str, function: str, returned: Any) -> None:
    """As a module of Node, or of the language."""
    assert run(sandbox, Snippet(code, is_module=True, function=function), config={"n": 1}) == returned


@pytest.mark.parametrize(
    ("script", "reason", "said"),
    [
        (
            Snippet("return 1"),
            SandboxReason.EXCEPTION,
            "SyntaxError: unexpected token in expression: 'return'",
        ),
        (Snippet("let a = 1;\n\nreturn a.b.c"), SandboxReason.EXCEPTION, "of undefined (line 3)"),
        (Snippet("(() => { throw {a: 1} })()"), SandboxReason.EXCEPTION, "[object Object]"),
        (Snippet("while (true) {\n}"), SandboxReason.TIMEOUT, "no answer within 0.5 s"),
        (Snippet(BOMB), SandboxReason.TIMEOUT, "no answer within 0.5 s"),
        (Snippet("new Proxy({}, {get() { for (;;); }})"), SandboxReason.TIMEOUT, "no answer"),
        (Snippet("({get pass() { throw new Error('trap') }})"), SandboxReason.EXCEPTION, "Error: trap"),
        (Snippet("'a'.repeat(1e9)"), SandboxReason.MEMORY, "more memory"),
        (Snippet("const a = [];\nfor (;;) a.push('x'.repeat(1e5));"), SandboxReason.MEMORY, "more memory"),
        (Snippet("new ArrayBuffer(1e9)"), SandboxReason.MEMORY, "more memory"),
        (Snippet("(function f() { return f() })()"), SandboxReason.EXCEPTION, "call stack size"),
        (Snippet("'a'.repeat(2e6)"), SandboxReason.EXCEPTION, "characters as JSON, at most 1000000"),
        (Snippet("JSON.parse('['.repeat(1e5))"), SandboxReason.EXCEPTION, "(line 1)"),
        (Snippet("const a = [];\na.push(a);\nreturn a"), SandboxReason.EXCEPTION, "circular"),
        (Snippet("let a = 1;\n\nreturn JSON.parse('{]')"), SandboxReason.EXCEPTION, "column 2) (line 3)"),
        (Snippet("10n"), SandboxReason.EXCEPTION, "BigInt"),
        (Snippet("new Promise(() => {})"), SandboxReason.EXCEPTION, "never settled"),
        (Snippet("import('fs')"), SandboxReason.EXCEPTION, "could not load module"),
        (Snippet("require('fs')", is_module=True), SandboxReason.EXCEPTION, "no module fs"),
        (Snippet("1", is_module=True), SandboxReason.EXCEPTION, "write module.exports"),
        (Snippet("exports.f = 1", is_module=True, function="f"), SandboxReason.EXCEPTION, "no function f"),
    ],
    ids=lambda value: value.source[:30] if isinstance(value, Snippet) else None,
)
def test_what_goes_wrong_is_one_line_and_the_next_call_works(
    sandbox: Sandbox, script: Snippet, reason: SandboxReason, said: str
) -> None:
    """Whatever a script does, it ends within its deadline."""
    with pytest.raises(SandboxError) as caught:
        run(sandbox, script)
    assert (caught.value.reason, "\n" in caught.value.message) == (reason, False)
    assert said in caught.value.message
    assert run(sandbox, Snippet("output")) == "Paris"


def test_a_call_changes_nothing_for_the_next(sandbox: Sandbox) -> None:
    """Neither prototypes and globals, nor what the interpreter itself is made of."""
    changes = """
        Object.prototype.pass = Array.prototype.map = String.prototype.trim = globalThis.mine = 1;
        JSON.parse = JSON.stringify = () => 'true';
        Object.prototype.toJSON = () => 1;
        return {};
    """
    assert run(sandbox, Snippet(changes)) == 1, "by its own toJSON"
    untouched = "[({}).pass, typeof mine, typeof [].map, ' a'.trim(), JSON.parse('2')].join()"
    assert run(sandbox, Snippet(untouched)) == ",undefined,function,a,2"


def test_checks_see_values_and_context(sandbox: Sandbox) -> None:
    """A selected object comes as one, an output as text; the reasons say what was returned."""
    raw = [
        {"javascript": "output.n === 2 && context.config.k === 1", "json_path": "$.a", "config": {"k": 1}},
        {"javascript": "typeof output"},
        {"javascript": "return 1"},
        {"not": {"javascript": "output.x.y"}},
        {"javascript": {"file": "a.js", "source": "module.exports = (o, c) => c.test.metadata.level"}},
    ]
    subject = Subject('{"a": {"n": 2}}', sandbox=sandbox, metadata={"level": 3})
    found = run_deterministic(parse_checks(raw), subject)
    assert [row.passed for row in found] == [True, False, False, False, True]
    assert "returned " in found[1].reason
    assert found[2].detail == {"error": "exception"}


def test_scripts_are_compiled_and_not_run() -> None:
    """What can never run is certain; where JavaScript cannot be run at all, nothing is."""
    good, bad, long = Snippet("output === 1"), Snippet("a b"), Snippet("const a = 1;\na > 0")
    looping = Snippet("while (true) ;\nreturn 1")
    found = list(script_problems([good, bad, looping, long]))
    assert [(each.script, each.is_certain) for each in found] == [(bad, True), (long, False)]


def test_without_the_extra_it_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says what to install, before anything is sent too; patterns are searched all the same."""
    monkeypatch.setattr("worker.sandbox.zygote_client.quickjs_file", lambda: "")
    boxes = Sandboxes(is_unsafe_allowed=True)
    with boxes.batch(None) as sandbox:
        assert sandbox.search("a", "a") == "a"
        with pytest.raises(UnusableError, match="quickjs-ng is not installed") as caught:
            run_deterministic([Check("javascript", "true")], Subject("", sandbox=sandbox))
    assert caught.value.hint == "pip install 'proctor[js]' where workers run"
    assert isinstance(boxes._zygote, Zygote)
    boxes.close()
    bench = tmp_path / "bench.yaml"
    bench.write_text(
        "name: n\nsystem_prompt: s\nmodels: [echo]\n"
        "test_cases:\n  - {input: a, checks: [{javascript: 'true'}]}\n"
    )
    found = forecast(Source(bench), SubmitOptions())
    assert found.missing is not None
    refused = found.missing.as_error()
    assert "bench.yaml:5: test_cases[0].checks[0]: JavaScript is not run here" in refused.message
    assert refused.hint == caught.value.hint
    assert found.plan is not None
    assert not lacking(found.plan.run.plugins, allow_code=False)
    monkeypatch.setattr("shared.plugins.find_spec", lambda _: None)
    assert having(lacking(found.plan.run.plugins, allow_code=False)) == "has the plug-in proctor[js]"


def test_functions_and_scripts_make_values(boxes: Sandboxes) -> None:
    """Any that JSON has; what is too large, or none, is one line."""
    source = """
import json
def city(output): return json.loads(output)
def named(output, context): return [output, context["metadata"]["k"]]
def thing(output): return {1, 2}
def huge(output): return "x" * 2_000_000
"""
    with boxes.batch(source) as sandbox:
        subject = Subject('{"n": 2}', sandbox=sandbox, metadata={"k": "v"})
        assert transformed(Transform(python="city"), subject).given == {"n": 2}
        assert transformed(Transform(python="named"), subject).given == ['{"n": 2}', "v"]
        assert transformed(Transform(javascript="JSON.parse(output)"), subject).given == {"n": 2}
        for name, why in (
            ("thing", "not JSON serializable"),
            ("huge", "characters as JSON"),
            ("none", "no function"),
        ):
            with pytest.raises((TransformError, UnusableError), match=why):
                transformed(Transform(python=name), subject)
