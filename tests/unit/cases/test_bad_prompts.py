"""Every way to get prompts, variables, checks and options wrong is one line: file, line, case, remedy."""

from pathlib import Path

import pytest

from tests.support.benches import CASES, HEAD, refusal, write

ASKED = "name: bench\nmodels: [m]\n"
"""A bench without a system message."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ASKED + CASES, "system_prompt: is missing | write system_prompt, or prompts"),
        (ASKED + "prompts: ['{{ x }']\n" + CASES, ":3: prompts[0].user: not a template: unexpected '}'"),
        (
            ASKED
            + "prompts: [{id: p, user: 'In {{ countri }}'}]\ntest_cases:\n  - {id: fr, vars: {country: F}}\n",
            ":5: test_cases[0] (case 'fr'): prompt 'p': the variable 'countri' is missing | did you mean",
        ),
        (
            ASKED + "prompts: ['{{ x.y }}']\ntest_cases:\n  - vars: {x: {z: 1}}\n",
            ":5: test_cases[0]: prompt 'prompt-1': 'y' is missing:",
        ),
        (
            ASKED + "prompts: ['{{ 1 / x }}']\ntest_cases:\n  - vars: {x: 0}\n",
            "prompt 'prompt-1': the template cannot be rendered: ZeroDivisionError: division by zero",
        ),
        (
            ASKED + "prompts: [\"{{ ''.__class__.mro() }}\"]\n" + CASES,
            "prompt 'prompt-1': the template cannot be rendered: SecurityError",
        ),
        (
            ASKED + "prompts: ['{{ \"a\" * 1000000000000 }}']\n" + CASES,
            "prompt 'prompt-1': the template cannot be rendered: SecurityError: * is for numbers here",
        ),
        (ASKED + "prompts: ['{{ 9 ** 9 ** 9 ** 9 }}']\n" + CASES, "SecurityError: no powers here"),
        (
            ASKED + "prompts:\n  - {id: p, user: a}\n  - {id: p, user: b}\n" + CASES,
            ":5: id: 'p' is the id of another prompt",
        ),
        (ASKED + "prompts: [{user: a, file: b.txt}]\n" + CASES, "user and file both stand here"),
        (ASKED + "prompts: [{id: a}]\n" + CASES, "nothing to send | write user, messages, system or file"),
        (ASKED + "prompts: [{file: x.txt}]\n" + CASES, ":3: prompts[0].file: no such file: 'x.txt'"),
        (
            ASKED + "prompts: [{file: ../x.txt}]\n" + CASES,
            "prompts[0].file: '../x.txt' leads out of the folder",
        ),
        (
            ASKED + "prompts: [{system: Hi}]\ntest_cases:\n  - {}\n",
            ":5: test_cases[0].input: is missing | prompt 'prompt-1' has no user message",
        ),
        (
            HEAD + "test_cases:\n  - messages: [{role: assistant, content: a}]\n",
            ":5: test_cases[0].messages: ends with a message of the role assistant",
        ),
        (
            HEAD + "test_cases:\n  - messages: [{role: users, content: a}]\n",
            "test_cases[0].messages[0].role: unknown value 'users' | did you mean 'user'?",
        ),
        (
            HEAD + CASES + "    checks: [{contain: a}]\n",
            ":6: test_cases[0].checks[0]: unknown check 'contain' | did you mean 'contains'?",
        ),
        (
            HEAD + CASES + "    checks:\n      - {contains: a, ignore_cas: true}\n",
            ":7: test_cases[0].checks[0].ignore_cas: contains has no option 'ignore_cas' | did you mean",
        ),
        (
            HEAD + CASES + "    checks: [{contains: a, at_least: 1.5}]\n",
            ":6: test_cases[0].checks[0].at_least: should be less than or equal to 1, found 1.5",
        ),
        (HEAD + CASES + "    at_least: 2\n", ":6: test_cases[0].at_least: 2 is too much | at most 1"),
        (
            HEAD + "default_checks: [{contains: '{{ x }}'}]\ntest_cases:\n  - {id: a, input: Hi}\n",
            ":4: default_checks[0].contains (case 'a'): the variable 'x' is missing",
        ),
        (HEAD + CASES + "    expand: true\n", ":6: test_cases[0].expand: none of the case's vars is a list"),
        (HEAD + CASES + "    images: [x.png]\n", ":6: test_cases[0].images[0]: no such file: 'x.png'"),
        (HEAD + CASES + "    images: [../x.png]\n", ":6: test_cases[0].images[0]: '../x.png' leads out of"),
        (HEAD + CASES + "    images: [bench.config.yaml]\n", "images[0]: 'bench.config.yaml' is no image"),
        (HEAD + CASES + "params: {temprature: 1}\n", ":6: params.temprature: unknown key | did you mean"),
        (HEAD + CASES + "params: {top_p: 2}\n", ":6: params.top_p: 2 is too much"),
        (
            HEAD + CASES + "headers: {Authorization: Bearer x}\n",
            ":6: headers: 'Authorization' holds a secret, which must not be stored | write env",
        ),
        (
            HEAD + CASES + "headers: {X-A: 'env:a b'}\n",
            ":6: headers: 'X-A' does not name a variable | write env:VARIABLE",
        ),
    ],
)  # fmt: skip - one wrong file, one row
def test_what_breaks_the_contract_is_reported(tmp_path: Path, text: str, words: str) -> None:
    """The message names file, line and path, says what is wrong, and the hint how to mend it."""
    found = refusal(write(tmp_path, text))
    assert words in found
    assert found.startswith("bench.config.yaml:")


def test_lines_of_data_files_are_named(tmp_path: Path) -> None:
    """A check of a JSON Lines file is found by its line."""
    write(tmp_path, '{"input": "a"}\n{"input": "b", "checks": ["contain"]}\n', "cases.jsonl")
    found = refusal(write(tmp_path, HEAD + "test_cases_file: cases.jsonl\n"))
    assert "cases.jsonl:2: checks[0]: unknown check 'contain'" in found


def test_a_prompt_file_is_read_strictly(tmp_path: Path) -> None:
    """What is no list of messages is refused with its place in that file."""
    bench = write(tmp_path, ASKED + "prompts: [{file: p.yaml}]\n" + CASES)
    for text, words in (
        ("user: Hi\n", "p.yaml:1: not a list of messages"),
        ("- role: user\n  text: Hi\n", "p.yaml:2: messages[0].text: unknown key"),
        ("- {role: user\n", "p.yaml:2: not valid YAML"),
        ("", "prompts[0].file: "),
        ("- {role: user, content: '{% if %}'}\n", "p.yaml:1: not a template"),
    ):
        write(tmp_path, text, "p.yaml")
        assert words in refusal(bench)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("at_least: 80", "test_cases[1].at_least (case 'fr'): 80 is too much | at most 1"),
        ("checks: {json: null}", "test_cases[1].checks (case 'fr'): not a list"),
        (
            "messages: [{role: robot, content: Hi}]",
            "test_cases[1].messages[0].role (case 'fr'): unknown value 'robot'",
        ),
        ("expand: true", "test_cases[1].expand (case 'fr'): none of the case's vars is a list"),
        ("wieght: 2", "test_cases[1].wieght (case 'fr'): unknown key | did you mean 'weight'?"),
    ],
)
def test_the_case_is_named(tmp_path: Path, line: str, words: str) -> None:
    """Whatever is wrong with a case that has an id, the message says which one it is."""
    bench = HEAD + f"test_cases:\n  - input: Ho\n  - id: fr\n    input: Hi\n    {line}\n"
    assert f"bench.config.yaml:8: {words}" in refusal(write(tmp_path, bench))
