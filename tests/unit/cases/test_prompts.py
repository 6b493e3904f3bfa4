"""Prompts, variables and conversations of a bench become the items that workers receive."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from producer.load import kept_values
from shared.contracts.case_run import CasePayload, encode_case, read_shared_vars
from tests.support.benches import MINIMAL, plan, refusal, write

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def items(folder: Path, **bench: Any) -> list[CasePayload]:
    """The items of a bench; what is not given is minimal."""
    return list(plan(write(folder, yaml.safe_dump({**MINIMAL, **bench}, allow_unicode=True))).items())


def test_items_are_models_by_prompts_by_cases_by_repeats(tmp_path: Path) -> None:
    """Every case is put to every model with every prompt, in this order, and is named after them."""
    found = items(
        tmp_path,
        models=["a", "b"],
        prompts=[{"id": "short", "user": "{{ city }}?"}, {"id": "long", "user": "What of {{ city }}?"}],
        test_cases=[{"id": "one", "vars": {"city": "Rome"}}, {"vars": {"city": "Oslo"}}],
        config={"repeat": 2},
    )
    assert [(item.model, item.prompt_id, item.case, item.repeat) for item in found] == [
        (model, prompt, case, repeat)
        for model in "ab"
        for prompt in ("short", "long")
        for case in (0, 1)
        for repeat in (0, 1)
    ]
    assert [item.input for item in found[:8:2]] == ["Rome?", "Oslo?", "What of Rome?", "What of Oslo?"]
    assert found[5].first == "one · a · long #2"


def test_the_nearest_system_message_is_sent(tmp_path: Path) -> None:
    """A case's messages go before its system_prompt, that before the prompt's, that before the bench's."""
    messages = [{"role": "system", "content": "of messages"}, {"role": "user", "content": "Hi"}]
    cases = [
        {"messages": messages, "system_prompt": "of case"},
        {"system_prompt": "of case"},
        {"input": "Hi"},
        {"messages": messages[1:]},
    ]
    prompts = [{"system": "of {{ input | default('prompt') }}", "user": "Hi"}, {"user": "Hi"}]
    found = items(tmp_path, system_prompt="of bench", prompts=prompts, test_cases=cases)
    assert [item.system for item in found] == ["", "of case", "of Hi", "of prompt", "", "of case", None, None]
    assert found[0].messages == messages
    assert found[3].messages is None
    assert (found[3].input, found[3].prompt_id) == ("Hi", "prompt-1")


def test_prompts_are_read_from_files(tmp_path: Path) -> None:
    """A list of messages with its system message, and texts; ids are the stems of the files."""
    (tmp_path / "prompts").mkdir()
    messages = [
        {"role": "system", "content": "Answer in {{ language }}."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": [{"type": "text", "text": "{{ city }}?"}]},
    ]
    write(tmp_path, yaml.safe_dump(messages), "prompts/long.yaml")
    write(tmp_path, "# {{ city }}\n", "prompts/note.md")
    found = items(
        tmp_path,
        vars={"language": "French", "city": "Paris"},
        prompts=[{"file": "prompts/long.yaml"}, {"file": "prompts/note.md", "id": "md"}],
        test_cases=[{"vars": {"city": "Rome"}}],
    )
    assert [item.prompt_id for item in found] == ["long", "md"]
    assert (found[0].system, found[0].input) == ("Answer in French.", "Rome?")
    assert found[0].messages == [
        *messages[1:3],
        {"role": "user", "content": [{"type": "text", "text": "Rome?"}]},
    ]
    assert (found[1].system, found[1].input, found[1].messages) == (None, "# Rome", None)
    assert found[0].vars == {"language": "French", "city": "Rome"}


def test_too_many_combinations_are_refused_at_once(tmp_path: Path) -> None:
    """30 lists of 10 values are counted and not made."""
    values = {f"v{at}": [*range(10)] for at in range(30)}
    bench = {**MINIMAL, "test_cases": [{"id": "all", "input": "Hi", "expand": True, "vars": values}]}
    found = refusal(write(tmp_path, yaml.safe_dump(bench)))
    assert (
        "test_cases[0].expand (case 'all'): 1,000,000,000,000,000,000,000,000,000,000 combinations" in found
    )


def test_one_case_stands_for_all_combinations(tmp_path: Path) -> None:
    """Lists among the variables are multiplied, and ids name the combination."""
    found = items(
        tmp_path,
        prompts=["{{ city }} {{ size }} {{ unit }}"],
        test_cases=[
            {"id": "x", "expand": True, "vars": {"city": ["Rome", "Oslo"], "unit": "m", "size": [1, 2]}},
            {"vars": {"city": ["a"], "size": 1, "unit": ""}},
        ],
    )
    assert [item.input for item in found] == ["Rome 1 m", "Rome 2 m", "Oslo 1 m", "Oslo 2 m", "['a'] 1 "]
    assert found[1].id == "x[city=Rome,size=2]"
    assert [item.case for item in found] == [0, 1, 2, 3, 4]


def test_a_bench_without_prompts_sends_its_text_as_it_is(tmp_path: Path) -> None:
    """Braces are no template there, and a warning says so."""
    found = plan(write(tmp_path, yaml.safe_dump({**MINIMAL, "test_cases": [{"input": "Say {{ x }}"}]})))
    [item] = found.items()
    assert (item.input, item.prompt_id, item.vars) == ("Say {{ x }}", None, {})
    [warning] = found.warnings
    assert warning.endswith(":6: test_cases[0].input: {{ }} is sent as it is: only prompts are templates")


def test_images_are_stored_once(tmp_path: Path) -> None:
    """Items carry hashes, and the run one file for each."""
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.png").write_bytes(PNG)
    bench = {**MINIMAL, "test_cases": [{"input": "Look", "images": ["a.png", "b.png"]}, {"input": "No"}]}
    found = plan(write(tmp_path, yaml.safe_dump(bench)))
    one, two = found.items()
    assert list(found.files) == [*{*one.images}]
    assert (len(one.images), two.images) == (2, [])


def test_facts_of_a_case_travel_with_it(tmp_path: Path) -> None:
    """Tags, metadata, weight and checks with the bench's defaults below them."""
    [item, plain] = items(
        tmp_path,
        vars={"city": "Paris"},
        default_checks=[{"starts_with": "P"}],
        test_cases=[
            {
                "input": "Hi",
                "tags": ["a"],
                "metadata": {"owner": "x"},
                "weight": 2,
                "at_least": 0.5,
                "checks": [{"contains": "{{ city }}"}],
            },
            {"input": "Hi", "default_checks": False},
        ],
    )
    assert (item.tags, item.metadata, item.weight, item.criteria["at_least"]) == (
        ["a"],
        {"owner": "x"},
        2,
        0.5,
    )
    assert item.criteria["checks"] == [
        {"check": "starts_with", "argument": "P"},
        {"check": "contains", "argument": "Paris", "written": "contains: {{ city }}"},
    ]
    assert (plain.criteria, plain.tags, plain.weight) == ({}, [], 1)


def test_recorded_outputs_may_name_their_prompt(tmp_path: Path) -> None:
    """An output of a prompt goes before one of all prompts."""
    rows = [
        {"case": 0, "model": "m", "output": "all"},
        {"case": 0, "model": "m", "output": "b", "prompt": "b"},
    ]
    outputs = write(tmp_path, "\n".join(map(json.dumps, rows)), "outputs.jsonl")
    bench = {**MINIMAL, "prompts": [{"id": "a", "user": "1"}, {"id": "b", "user": "2"}], "test_cases": [{}]}
    found = plan(write(tmp_path, yaml.safe_dump(bench)), outputs=str(outputs)).items()
    assert [item.recorded and item.recorded.output for item in found] == ["all", "b"]


def test_options_are_merged_once_for_each_model_and_prompt(tmp_path: Path) -> None:
    """The prompt's go before the model's, those before the bench's; `-t` goes before every temperature."""
    bench = {
        **MINIMAL,
        "models": ["a", "b"],
        "params": {"temperature": 0.5, "seed": 1, "extra_body": {"k": 1}, "headers": {"X-A": "inner"}},
        "headers": {"X-Team": "a"},
        "judge_params": {"temperature": None, "seed": 9},
        "model_configs": {
            "b": {"params": {"temperature": None, "extra_body": {"l": 2}}, "headers": {"x-team": "b"}}
        },
        "prompts": [
            {"id": "p", "user": "Hi"},
            {"id": "q", "user": "Hi", "params": {"temperature": 1, "seed": None}},
        ],
        "test_cases": [{}],
    }
    path = write(tmp_path, yaml.safe_dump(bench))
    run = plan(path).run
    assert run.calls["a"]["p"] == {
        "params": {"temperature": 0.5, "seed": 1, "extra_body": {"k": 1}},
        "headers": {"X-A": "inner", "X-Team": "a"},
    }
    assert run.calls["b"]["p"]["params"] == {"temperature": None, "seed": 1, "extra_body": {"k": 1, "l": 2}}
    assert run.calls["b"]["p"]["headers"] == {"X-A": "inner", "x-team": "b"}
    assert run.calls["b"]["q"]["params"] == {"temperature": 1, "extra_body": {"k": 1, "l": 2}}
    assert run.judge_params == {"temperature": None, "seed": 9}
    fixed = plan(path, temperature=0.9).run
    assert fixed.temperature == 0.9
    assert not any(
        "temperature" in call["params"] for of_model in fixed.calls.values() for call in of_model.values()
    )


def test_an_image_has_a_bound(tmp_path: Path) -> None:
    """5 MiB each; links out of the folder are followed and refused."""
    (tmp_path / "big.png").write_bytes(PNG + b"0" * (5 << 20))
    (tmp_path / "out.png").symlink_to("/etc/hostname")
    bench = {**MINIMAL, "test_cases": [{"input": "Look", "images": ["big.png"]}]}
    assert "is larger than 5 MiB" in refusal(write(tmp_path, yaml.safe_dump(bench)))
    bench["test_cases"] = [{"input": "Look", "images": ["out.png"]}]
    assert "'out.png' leads out of the folder" in refusal(write(tmp_path, yaml.safe_dump(bench)))


def test_many_cases_lie_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they lie makes no difference to the items, nor to what is wrong with them."""
    bench: dict[str, Any] = {
        "models": ["a", "b"],
        "prompts": [{"id": "short", "user": "{{ city }}?"}],
        "default_checks": [{"contains": "{{ city }}"}, {"any": [{"length": 5}, "refusal"]}],
        "test_cases": [
            {"vars": {"city": "Rome"}, "id": "it", "outputs": {"a": "Rome", "b": "Roma"}, "tags": ["eu"]},
            {"vars": {"city": "Oslo"}, "weight": 2.0, "expected": {"x": 1}},
            {"messages": [{"role": "user", "content": "Hi"}], "vars": {"city": "Lima"}},
        ],
    }
    kept = items(tmp_path, **bench)
    monkeypatch.setattr(kept_values, "FEW", 1)
    assert list(map(encode_case, items(tmp_path, **bench))) == list(map(encode_case, kept))
    assert [item.case for item in plan(tmp_path / "bench.config.yaml", cases=("it",)).items()] == [0, 0]
    bench["test_cases"] += [{"id": "it", "vars": {"city": "Paris"}}, {"vars": {"town": "Paris"}}]
    text = refusal(write(tmp_path, yaml.safe_dump({**MINIMAL, **bench})))
    assert "'it' is the id of another case, at" in text


def test_line_ends_of_a_prompt_file_do_not_count(tmp_path: Path) -> None:
    """A file that was saved with CRLF makes the same prompt, and so the same key of the cache."""
    bench = {**MINIMAL, "prompts": [{"id": "p", "file": "p.txt"}], "test_cases": [{"vars": {"x": "1"}}]}
    sent = []
    for text in ("Line one\nLine {{ x }}\n", "Line one\r\nLine {{ x }}\r\n", "\nplain\n", "\r\nplain\r\n"):
        write(tmp_path, text, "p.txt")
        sent.append(items(tmp_path, **bench)[0].input)
    assert sent == ["Line one\nLine 1"] * 2 + ["\nplain"] * 2


def test_large_variables_of_the_bench_are_stored_once(tmp_path: Path) -> None:
    """Items have only their own variables then; small ones of the bench are copied into each, as before."""
    written = (
        "name: b\nmodels: [m, n]\nprompts: ['{{ doc|length }}{{ city }}']\nvars: {doc: %s, city: Rome}\n"
    )
    cases = "test_cases: [{id: a}, {id: b, vars: {city: Paris}}]\n"
    planned = plan(write(tmp_path, written % ("x" * 2_000) + cases))
    assert [(item.input, item.vars) for item in planned.items()][:2] == [
        ("2000Rome", {}),
        ("2000Paris", {"city": "Paris"}),
    ]
    [(name, stored)] = planned.files.items()
    assert planned.run.shared_vars == name
    assert json.loads(stored) == {"doc": "x" * 2_000, "city": "Rome"}
    assert read_shared_vars(planned.run, planned.files.get) == json.loads(stored)
    planned = plan(write(tmp_path, written % "small" + cases))
    assert [item.vars for item in planned.items()][:2] == [
        {"doc": "small", "city": "Rome"},
        {"doc": "small", "city": "Paris"},
    ]
    assert (planned.files, planned.run.shared_vars) == ({}, "")
