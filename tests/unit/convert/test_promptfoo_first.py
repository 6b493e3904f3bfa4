"""A small configuration becomes a bench that can be read, and what is left is listed."""

import json
from io import BytesIO
from pathlib import Path

import pytest

from producer.cases.bench_config import read_bench
from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import convert
from producer.convert.promptfoo.checks import DEFAULT_GRADER
from producer.convert.promptfoo.translating import cases_of
from producer.convert.report import ForeignFile
from producer.convert.verifying import rebased
from producer.load.problems import InputRow, Place
from producer.load.source import Source
from shared.contracts.case_vocabulary import DEFAULT_JUDGE
from shared.errors import InputError, UsageError

CONFIGURATION = """\
providers: [openai:gpt-4o-mini]
prompts: ["The capital of {{country}}?"]
tests:
  - vars: {country: [France, Peru]}
    assert:
      - {type: not-contains, value: "{{country}}", weight: 2, metric: silent}
      - {type: empty}
passRateThreshold: 0.8
"""


def test_a_configuration_becomes_a_bench(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(CONFIGURATION)

    found = convert(ForeignFile(file, tmp_path))

    text = bench_text(found.bench)
    bench = read_bench(Source(tmp_path / "bench.yaml", stdin=BytesIO(text.encode())))
    assert [case.vars for case in bench.cases] == [{"country": "France"}, {"country": "Peru"}]
    assert bench.config.models == ["openai/gpt-4o-mini"]
    check = {"not": {"contains": "{{country}}"}, "name": "silent", "weight": 2}
    assert bench.config.test_cases[0].checks == [check]
    message = f"{file}:7: assertion empty: promptfoo has no such type"
    assert [each.message for each in found.left] == [message, message]
    assert found.comments[()] == ("promptfoo has no key passRateThreshold, and ignores it",)


@pytest.mark.parametrize(("grader", "judge"), [(None, DEFAULT_GRADER), ("openai:gpt-4o", DEFAULT_JUDGE)])
def test_a_bench_names_the_grader_that_promptfoo_takes_by_itself(
    tmp_path: Path, grader: str | None, judge: str
) -> None:
    """Where an assertion names no grader; otherwise the bench has no judge of its own."""
    assertion = {"type": "not-llm-rubric", "value": "rude"} | ({"provider": grader} if grader else {})
    file = tmp_path / "promptfooconfig.json"
    file.write_text(
        json.dumps({"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": [assertion]}]})
    )

    assert convert(ForeignFile(file, tmp_path)).bench.settings.judge_model == judge


def test_a_context_that_code_takes_from_the_answer_is_a_transform(tmp_path: Path) -> None:
    """Files travel with their text; answers are compared by the same criterion."""
    (tmp_path / "context.js").write_text("module.exports = { found: (output) => output.documents };")
    assertions = [
        {"type": "context-faithfulness", "contextTransform": "output.documents", "threshold": 0.5},
        {"type": "context-recall", "value": "A", "contextTransform": "file://context.js:found"},
        {"type": "select-best", "value": "Is short."},
    ]
    file = tmp_path / "promptfooconfig.json"
    file.write_text(json.dumps({"prompts": ["Hi"], "providers": ["echo"], "tests": [{"assert": assertions}]}))

    found = convert(ForeignFile(file, tmp_path))
    bench = read_bench(Source(tmp_path / "bench.yaml", stdin=BytesIO(bench_text(found.bench).encode())))

    faithful, recalled, best = bench.cases[0].checks
    assert (faithful.argument, faithful.at_least) == ({"javascript": "output.documents"}, 0.5)
    code = recalled.argument["context"]["javascript"]
    assert (code["function"], code["source"][:14], len(code["sha256"])) == ("found", "module.exports", 64)
    assert (best.check, best.argument, bench.compares) == ("select_best", "Is short.", True)
    assert found.left == []


PROVIDERS: list[tuple[object, object]] = [
    ("openai:chat:gpt-4o", "openai/gpt-4o"),
    ("azure:chat:mine", "azure/mine"),
    (
        {"id": "azure:chat:mine", "config": {"apiHost": "https://x.example.com/", "apiVersion": "1"}},
        {"name": "azure/mine", "api_base": "https://x.example.com?api-version=1"},
    ),
    ("ollama:chat:llama3.1:8b", "ollama_chat/llama3.1:8b"),
    ("bedrock:anthropic.claude-v2", "bedrock/anthropic.claude-v2"),
    (
        {"openai:gpt-4o": {"config": {"temperature": 0}}},
        {"name": "openai/gpt-4o", "params": {"temperature": 0}},
    ),
    (
        {
            "id": "openai:gpt-4o",
            "config": {"apiKey": "{{env.TEAM_API_KEY}}", "apiHost": "proxy.example.com/v1"},
        },
        {
            "name": "openai/gpt-4o",
            "api_base": "https://proxy.example.com/v1",
            "api_key_env": "TEAM_API_KEY",
        },
    ),
    (
        {
            "id": "google:gemini-2.5-pro",
            "config": {
                "generationConfig": {
                    "maxOutputTokens": 9,
                    "topP": 0.5,
                    "response_mime_type": "application/json",
                    "thinkingConfig": {"thinkingBudget": 64},
                },
                "tools": [{"name": "f"}],
            },
        },
        {
            "name": "gemini/gemini-2.5-pro",
            "params": {
                "max_tokens": 9,
                "top_p": 0.5,
                "response_format": {"type": "json_object"},
                "extra_body": {"thinking": {"type": "enabled", "budget_tokens": 64}},
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            },
        },
    ),
    (
        {
            "id": "https",
            "label": "ours",
            "config": {
                "url": "https://h/chat",
                "headers": {"Authorization": "Bearer {{env.BOT_TOKEN}}", "X-Team": "a"},
                "body": '{"q": "{{prompt}}", "who": "{{user}}"}',
                "transformResponse": "(json) => json.choices[0].text",
            },
        },
        {
            "name": "ours",
            "api_key_env": "BOT_TOKEN",
            "http": {
                "url": "https://h/chat",
                "headers": {"X-Team": "a"},
                "body": {"q": "{{input}}", "who": "{{vars.user}}"},
                "answer": {"text": "/choices/0/text"},
            },
        },
    ),
    (
        {
            "id": "http",
            "config": {
                "url": "http://h/chat",
                "body": {"q": "{{prompt}}"},
                "transformResponse": "(json, text) => json.answer || text",
            },
        },
        {
            "name": "http://h/chat",
            "http": {"url": "http://h/chat", "body": {"q": "{{input}}"}, "answer": {"text": ""}},
            "transform": {
                "javascript": "const json = output;\n"
                "const text = typeof output === 'string' ? output : JSON.stringify(output);\n"
                "return ((json, text) => json.answer || text)(json, text);"
            },
        },
    ),
    ("file://app.py:ask", {"name": "app", "python": "app.py:ask"}),
    ("file://app.ts", {"name": "app", "javascript": "app.ts"}),
    (
        {
            "id": "bedrock:amazon.nova-lite-v1:0",
            "config": {
                "interfaceConfig": {"max_new_tokens": 9},
                "toolConfig": {
                    "toolChoice": {"any": {}},
                    "tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}],
                },
            },
        },
        {
            "name": "bedrock/amazon.nova-lite-v1:0",
            "params": {
                "max_tokens": 9,
                "tool_choice": "required",
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            },
        },
    ),
    (
        {
            "id": "google:gemini-2.5-flash",
            "config": {
                "tools": {"function_declarations": [{"name": "f"}]},
                "tool_config": {"function_calling_config": {"mode": "auto"}},
            },
        },
        {
            "name": "gemini/gemini-2.5-flash",
            "params": {
                "tool_choice": "auto",
                "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
            },
        },
    ),
    (
        {
            "id": "openai:responses:gpt-5",
            "config": {
                "store": False,
                "response_format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}},
                "tools": [{"type": "web_search_preview"}],
            },
        },
        {
            "name": "openai/responses/gpt-5",
            "params": {
                "extra_body": {"store": False},
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "object"}},
                },
                "tools": [{"type": "web_search_preview"}],
            },
        },
    ),
]


def test_providers_of_one_model_stay_apart(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.json"
    warm = {"id": "openai:gpt-4o", "label": "warm", "config": {"temperature": 1}}
    providers = ["openai:gpt-4o", warm, "openai:gpt-4o", {"id": "echo", "label": "a"}, "echo", "echo"]
    file.write_text(json.dumps({"providers": providers, "prompts": ["Hi"]}))

    found = convert(ForeignFile(file, tmp_path))

    assert found.bench.model_dump(mode="json", exclude_unset=True)["models"] == [
        "openai/gpt-4o",
        {"name": "warm", "model": "openai/gpt-4o", "params": {"temperature": 1}},
        {"name": "openai/gpt-4o (2)", "model": "openai/gpt-4o"},
        "echo/a",
        "echo",
        "echo/2",
    ]
    assert not found.left


@pytest.mark.parametrize(("provider", "model"), PROVIDERS, ids=lambda each: str(each)[:40])
def test_providers_are_models(provider: object, model: object, tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.json"
    file.write_text(json.dumps({"providers": [provider], "prompts": ["Hi"]}))

    found = convert(ForeignFile(file, tmp_path))

    [entry] = found.bench.model_dump(mode="json", exclude_unset=True, by_alias=True)["models"]
    assert entry == model
    assert not found.left


def test_tests_of_code_are_made_when_the_bench_is_read(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.json"
    tests = [{"path": "file://made.py:tests", "config": {"most": 2}}, "made.js"]
    written = {"providers": ["echo"], "prompts": ["Say {{word}}"], "tests": tests}
    file.write_text(json.dumps({**written, "defaultTest": {"threshold": 0.5}}))

    found = convert(ForeignFile(file, tmp_path))

    bench = found.bench.model_dump(mode="json", exclude_unset=True)
    assert bench["test_cases_file"] == [
        {"python": "made.py:tests", "returns": "promptfoo", "config": {"most": 2}, "threshold": 0.5},
        {"javascript": "made.js", "returns": "promptfoo", "threshold": 0.5},
    ]
    assert (bench["prompts"], found.left) == ([{"user": "Say {{word}}"}], [])


def test_tests_of_promptfoo_that_code_returns_are_cases(tmp_path: Path) -> None:
    bench = tmp_path / "bench.yaml"
    bench.write_text("test_cases_file: {python: made.py, returns: promptfoo}")
    made = {"vars": {"word": ["a", "b"]}, "assert": [{"type": "icontains", "value": "{{word}}"}]}
    rows = [InputRow(Place("made.py[0]"), made)]

    cases = [case for _, case in cases_of(bench, rows)]

    assert [case.vars for case in cases] == [{"word": "a"}, {"word": "b"}]
    assert cases[0].checks == [{"contains": "{{word}}", "ignore_case": True}]
    [case, _] = [case for _, case in cases_of(bench, rows, 0.5)]
    assert case.at_least == 0.5
    rows[0].value["assert"] = []
    thresholds = [
        [each.at_least for _, each in cases_of(bench, rows, 0.5, checks)] for checks in ([], ["json"])
    ]
    assert thresholds == [[None, None], [0.5, 0.5]]
    rows[0].value["assert"] = [{"type": "python", "value": "True"}]
    with pytest.raises(InputError, match=r"made\.py\[0\].*assertion python"):
        list(cases_of(bench, rows))


def test_comments_stay_above_what_they_explain(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.yaml"
    text = (
        "# all\ndescription: A\nproviders:\n  # cheap\n  - echo\nprompts:\n  - |\n    a\n    # no comment\n"
    )
    file.write_text(
        text + "tests:\n  # first\n  - assert:\n      # why\n      - {type: contains, value: a}\n"
    )

    found = convert(ForeignFile(file, tmp_path))

    written = bench_text(found.bench, found.comments).splitlines()
    for comment, below in (
        ("# all", "name: A"),
        ("# cheap", "- echo"),
        ("# first", "- checks:"),
        ("# why", "- {contains: a}"),
    ):
        at = [line.strip() for line in written].index(comment)
        assert written[at + 1].strip() == below


FILTERS: list[tuple[str, str, str]] = [
    ("{{ d | title }}", "{{ d | title }}", "the filter title: Jinja also writes a capital behind"),
    ("{{ long | truncate(9) }}", "{{ long | truncate(12, leeway=0) }}", "the filter truncate: Jinja cuts"),
    ("{{ long | wordwrap(20) | upper }}", "{{ long | upper }}", "the filter wordwrap has no counterpart"),
    ('{% include "a" %}', '{% raw %}{% include "a" %}{% endraw %}', "it stays a text: {% include %} has no"),
]


@pytest.mark.parametrize(("prompt", "user", "reason"), FILTERS)
def test_a_filter_that_differs_is_named_and_the_prompt_stays(
    prompt: str, user: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "promptfooconfig.json"
    tests = [{"vars": {"d": "well-known", "long": "a long text"}}]
    file.write_text(json.dumps({"providers": ["echo"], "prompts": [prompt], "tests": tests}))

    found = convert(ForeignFile(file, tmp_path))

    [written] = found.bench.prompts or []
    assert written.user == user
    [left] = found.left
    assert left.message.startswith(f"{file}:1: prompt {prompt}: {reason}")


def test_paths_begin_at_the_folder_of_the_bench(tmp_path: Path) -> None:
    file = tmp_path / "inner" / "promptfooconfig.json"
    file.parent.mkdir()
    (file.parent / "check.js").write_text("module.exports = (output) => true;")
    check = {"type": "javascript", "value": "file://check.js"}
    tests = [
        {"assert": [check, {"type": "javascript", "value": "output"}], "options": {"storeOutputAs": "x"}}
    ]
    file.write_text(json.dumps({"providers": ["echo"], "prompts": ["Hi"], "tests": tests}))
    found = convert(ForeignFile(file, tmp_path))

    moved = rebased(found, file, tmp_path / "bench.yaml").bench
    checks = [{"javascript": {"file": "inner/check.js"}}, {"javascript": "output"}]
    assert moved.test_cases[0].checks == checks
    assert [each.reason.partition(":")[0] for each in found.left] == ["cases do not see answers to others"]

    with pytest.raises(UsageError, match=r"cannot name check\.js, which"):
        rebased(found, file, tmp_path / "other" / "bench.yaml")


def test_comments_behind_values_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text("description: Capitals   # trailing\nproviders: [echo]  # who\nprompts: ['a # b']\n")

    found = convert(ForeignFile(file, tmp_path))

    assert found.comments[()] == ("trailing",)
    assert found.comments["models",] == ("who",)
    assert ("prompts", 0) not in found.comments


def test_a_case_has_one_value_of_a_list(tmp_path: Path) -> None:
    """So that a long list makes as many cases, and these are no longer than it."""
    file = tmp_path / "promptfooconfig.json"
    texts = [f"{at} {'x' * 100}" for at in range(500)]
    file.write_text(json.dumps({"providers": ["echo"], "tests": [{"vars": {"prompt": texts}}]}))

    assert len(convert(ForeignFile(file, tmp_path)).bench.test_cases) == len(texts)


def test_values_of_the_environment_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they are called, they may be secrets; each is listed, but for keys, which the bench names."""
    for name in ("MY_DB", "SECRETKEY", "LEVEL", "TEAM_API_KEY"):
        monkeypatch.setenv(name, "hidden")
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(
        "env: {CITY: Rome}\n"
        "providers: [{id: openai:m, config: {apiKey: '{{env.TEAM_API_KEY}}'}}]\n"
        "prompts: ['{{env.CITY}} {{env.MY_DB}} {{ env.LEVEL | default(\"easy\") }}']\n"
        "tests: [{vars: {a: '{{env.SECRETKEY}}', b: '{{ env.NOT_THERE | default(\"b\") }}'}}]\n"
    )

    found = convert(ForeignFile(file, tmp_path))

    text = bench_text(found.bench)
    assert "hidden" not in text
    assert "Rome" in text
    assert "easy" in text
    assert [(each.what, each.place.found_line) for each in found.left] == [
        ("env.MY_DB", 3),
        ("env.LEVEL", 3),
        ("env.SECRETKEY", 4),
    ]
