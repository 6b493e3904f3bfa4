"""Whom a configuration asks: models, graders, code and programs, and what of it means nothing."""

import json
import runpy
import sys
from contextlib import chdir
from pathlib import Path

import pytest

from producer.convert.foreign_formats import convert
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import usable


def converted(folder: Path, **written: object) -> Conversion:
    """A configuration with `echo` and one test, and what more is written."""
    file = folder / "promptfooconfig.json"
    file.write_text(json.dumps({"providers": ["echo"], "prompts": ["Hi"], "tests": [{}], **written}))
    return convert(ForeignFile(file, folder))


def test_assertions_that_need_more_than_the_sandbox_are_code_beside_the_bench(tmp_path: Path) -> None:
    """One process for each file; what the sandbox can run stays there."""
    (tmp_path / "own.py").write_text("from pathlib import Path\ndef a(output, context): return True\n")
    (tmp_path / "own.ts").write_text("export const b = (output: string): boolean => output.length > 1;")
    (tmp_path / "needs.js").write_text("const fs = require('fs');\nmodule.exports = (output) => true;")
    (tmp_path / "alone.js").write_text("module.exports = (output) => true;")
    assertions = [
        {"type": "python", "value": "file://own.py:a", "threshold": 0.5, "config": {"most": 3}},
        {"type": "not-javascript", "value": "file://own.ts:b"},
        {"type": "javascript", "value": "file://needs.js", "metric": "files"},
        {"type": "javascript", "value": "file://alone.js"},
        {"type": "javascript", "value": "file://gone.ts"},
    ]
    found = converted(tmp_path, tests=[{"assert": assertions}])

    document = found.bench.model_dump(mode="json", exclude_unset=True)
    assert document["model_configs"] == {
        "own.py": {"python": "own.py", "role": "check"},
        "own.ts": {"javascript": "own.ts", "role": "check"},
        "needs.js": {"javascript": "needs.js", "role": "check"},
    }
    assert document["test_cases"][0]["checks"] == [
        {"verdict": "a", "model": "own.py", "at_least": 0.5, "config": {"most": 3}},
        {"not": {"verdict": "b", "model": "own.ts"}},
        {"verdict": None, "model": "needs.js", "name": "files"},
        {"javascript": {"file": "alone.js"}},
    ]
    assert [each.what for each in found.left] == ["assertion javascript"]
    assert usable(found, tmp_path / "bench.yaml") == found


def test_graders_keep_their_options(tmp_path: Path) -> None:
    """Endpoints beside their names, options of calls for all judges; code grades as it is."""
    (tmp_path / "judge.ts").write_text("export default async () => ({ output: '{}' });")
    local = {"id": "openai:chat:m", "config": {"apiBaseUrl": "http://h/v1", "max_tokens": 9}}
    same = {"text": {"id": "openai:chat:m", "label": "other", "config": {"max_tokens": 9, "temperature": 0}}}
    coded = {"id": "file://judge.ts", "config": {"strict": True}}
    warm = {"id": "openai:chat:w", "config": {"temperature": 1}}
    assertions = [
        {"type": "llm-rubric", "value": "kind", **({"provider": each} if each else {})}
        for each in (None, same, coded, warm)
    ]
    tests = [{"options": {"provider": local}, "assert": assertions}]
    found = converted(tmp_path, providers=["openai:chat:m"], tests=tests)

    document = found.bench.model_dump(mode="json", exclude_unset=True)
    models = [each["model"] for each in document["test_cases"][0]["checks"]]
    assert models == ["openai/m (judge)", "openai/m", "judge", "openai/w"]
    assert document["model_configs"] == {
        "openai/m (judge)": {"model": "openai/m", "api_base": "http://h/v1"},
        "judge": {"javascript": "judge.ts", "config": {"strict": True}},
    }
    assert document["judge_params"] == {"max_tokens": 9}
    assert [(each.what, each.reason[:10]) for each in found.left] == [("options of graders", "all judges")]


def test_what_promptfoo_ignores_is_a_comment(tmp_path: Path) -> None:
    """So is what changes neither prompts nor verdicts: the pace, and attacks beside tests."""
    mistral = {"id": "mistral:m", "delay": 2000, "notes": 1, "config": {"url": "http://h", "stream": True}}
    found = converted(
        tmp_path,
        providers=[mistral],
        tests=[{"name": "a", "vars": {}, "options": {"only": True}}],
        redteam={"purpose": "A shop"},
        evaluateOptions={"runSerially": True, "maxConcurrency": 9},
        commandLineOptions={"maxConcurrency": 1, "cache": False},
        passRateThreshold=0.8,
    )

    assert found.left == []
    assert found.comments[()] == (
        "redteam: attacks are made by tools of their own (garak)",
        "promptfoo has no key runSerially of evaluateOptions, and ignores it",
        "promptfoo has no key passRateThreshold, and ignores it",
        "promptfoo has no key name of tests, and ignores it",
        "promptfoo has no key notes of providers, and ignores it",
        "promptfoo has no key url of models, and ignores it",
        "promptfoo has no key only of options, and ignores it",
        "delay of mistral:m: `proctor limits set MODEL --rpm 30`",
    )
    settings = found.bench.settings
    assert (settings.concurrency, settings.cache) == (1, False)
    untested = converted(tmp_path, tests=None, redteam={})
    assert [each.what for each in untested.left] == ["redteam"]


def test_a_test_may_be_put_to_a_model_of_its_own(tmp_path: Path) -> None:
    """Another one than the models of the bench, which all other tests are put to."""
    warm = {"id": "openai:chat:m", "label": "warm", "config": {"temperature": 1}}
    found = converted(
        tmp_path,
        providers=["openai:chat:m", "echo"],
        tests=[{"provider": warm, "vars": {"n": 1}}, {"vars": {"n": 2}}, {"provider": "echo"}],
    )

    document = found.bench.model_dump(mode="json", exclude_unset=True)
    assert [each if isinstance(each, str) else each["name"] for each in document["models"]] == [
        "openai/m",
        "echo",
        "warm",
    ]
    cases = [case["only"]["models"] for case in document["test_cases"]]
    assert (cases, found.left) == ([["warm"], ["openai/m", "echo"], ["echo"]], [])


def test_a_model_with_a_system_message_has_prompts_of_its_own(tmp_path: Path) -> None:
    parts = {"parts": [{"text": "Be {{tone}}."}]}
    google = {"id": "google:g", "config": {"systemInstruction": parts, "temperature": 0}}
    tests = [{"vars": {"tone": "kind"}}]
    found = converted(tmp_path, providers=["echo", google], prompts=["Hi {{tone}}"], tests=tests)

    document = found.bench.model_dump(mode="json", exclude_unset=True)
    assert document["prompts"] == [
        {"user": "Hi {{tone}}", "id": "prompt-1"},
        {"user": "Hi {{tone}}", "id": "prompt-1 for gemini/g", "system": "Be {{tone}}."},
    ]
    assert document["models"] == [
        {"name": "echo", "prompts": ["prompt-1"]},
        {"name": "gemini/g", "params": {"temperature": 0}, "prompts": ["prompt-1 for gemini/g"]},
    ]
    assert found.left == []
    chat = [{"role": "system", "content": "Hi"}, {"role": "user", "content": "Hi"}]
    left = converted(tmp_path, providers=[google], prompts=[json.dumps(chat)]).left
    assert [each.what for each in left] == ["system message of google:g"]


def test_a_variable_whose_file_is_missing_is_named(tmp_path: Path) -> None:
    found = converted(tmp_path, tests=[{"vars": {"a": "file://gone.txt\n\nmore"}}])

    [left] = found.left
    assert left.message.endswith("promptfoo ends the test in an error")


def test_programs_that_answer_and_write_prompts_are_run_by_a_file_beside_the_bench(tmp_path: Path) -> None:
    (tmp_path / "write.py").write_text("import sys\nprint('Hello ' + sys.argv[1][2:6])\n")
    (tmp_path / "ask.py").write_text("import sys\nprint(sys.argv[1][::-1])\n")
    ask = {"id": f"exec:{sys.executable} ask.py", "label": "own"}
    found = converted(tmp_path, providers=[ask], prompts=["file://write.py"])

    assert found.left == []
    [(name, text)] = found.files.items()
    (tmp_path / name).write_text(text)
    program = runpy.run_path(str(tmp_path / name))
    [model], [prompt] = found.bench.models, found.bench.prompts or []
    assert not isinstance(model, str)
    assert (model.python, prompt.python) == (f"{name}:call_api", f"{name}:create_prompt")
    with chdir(tmp_path):
        assert program["call_api"]("Hi", {"config": model.config}, {}) == "iH"
        assert program["create_prompt"]({"vars": {}, "config": prompt.config}) == "Hello vars"
        with pytest.raises(RuntimeError, match="ended with 2"):
            program["call_api"]("Hi", {"config": {"command": [sys.executable, "gone.py"]}}, {})


def test_a_conversation_that_is_one_only_once_rendered_is_put_to_cases_of_its_own(tmp_path: Path) -> None:
    """Beside a prompt that is a text: one case for each."""
    chat = '[{"role": "user", "content": {{ word | dump }}}]'
    history = [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "No."}]
    tests = [{"vars": {"word": "a", "messages": history}}, {"vars": {"word": "b"}, "prompts": ["text"]}]
    prompts = [
        {"id": "text", "raw": "Say {{ word }}"},
        {"id": "chat", "raw": chat},
        {"id": "all", "raw": "{{ messages | dump }}"},
    ]
    found = converted(tmp_path, prompts=prompts, providers=["openai:m"], tests=tests)

    document = found.bench.model_dump(mode="json", exclude_unset=True)
    assert document["prompts"] == [
        {"id": "text", "user": "Say {{ word }}"},
        {"id": "chat", "user": "{{ input }}"},
        {"id": "all", "user": "{{ input }}"},
    ]
    cases = [(case["only"]["prompts"], case.get("messages")) for case in document["test_cases"]]
    assert cases == [
        (["text"], None),
        (["chat"], [{"role": "user", "content": "a"}]),
        (["all"], history),
        (["text"], None),
    ]
    assert found.left == []
    assert usable(found, tmp_path / "bench.yaml") == found
