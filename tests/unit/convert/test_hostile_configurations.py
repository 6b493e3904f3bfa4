"""Hostile configurations of promptfoo end in one line, or in a list of what is left, and soon."""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from producer.convert.bench_text import bench_text
from producer.convert.foreign_formats import FORMATS, convert
from producer.convert.report import Conversion, ForeignFile
from producer.convert.verifying import usable
from shared.errors import InputError, UsageError

SOON_S = 20.0
"""On a busy machine; without bounds, each of these takes hours or all memory."""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
REFERENCES = "".join(f"r{at}: [" + ", ".join([f"{{$ref: '#/r{at - 1}'}}"] * 10) + "]\n" for at in range(1, 9))
EACH_WITH_EACH = (
    f"scenarios: [{{config: [{'{vars: {a: x}}, ' * 1_000}], tests: [{'{vars: {b: y}}, ' * 1_000}]}}]"
)
LISTS = f"{{vars: {{a: [{'x, ' * 99}], b: [{'y, ' * 99}]}}}}, "
LONG = f"{{vars: {{a: [{'x, ' * 99}], b: [{'y, ' * 99}], c: {'z' * 50_000}}}}}"
ASSERTED = f"{{assert: [{{type: equals, value: {'z' * 50_000}}}]}}"
LONG_SCENARIO = f"scenarios: [{{config: [{ASSERTED}], tests: [{'{}, ' * 300}]}}]"
MANY = ", ".join(f"v{at}: [a, b, c, d, e, f, g, h, i, j]" for at in range(9))

REFUSED = {
    "anchors that unfold to billions of values": BOMB + "providers: [echo]\n",
    "an anchor that contains itself": "providers: &a [echo, *a]\n",
    "lists in lists without end": "tests: " + "[" * 5_000,
    "references that unfold to billions of values": f"providers: [echo]\nr0: [x]\n{REFERENCES}",
    "a reference to itself": "providers: [echo]\na: {$ref: '#/a'}\ntests: [{$ref: '#/a'}]\n",
    "references in a ring": "providers: [echo]\na: {$ref: '#/b'}\nb: {$ref: '#/a'}\n",
    "a file outside of the folder": "providers: [echo]\nprompts: [file://../secret.txt]\n",
    "an absolute path": "providers: [echo]\ntests: file:///etc/passwd.yaml\n",
    "a link that leads out": "providers: [echo]\nprompts: [file://link.txt]\n",
    "a pattern over the whole disk": "providers: [echo]\ntests: file://../../../../**/*.yaml\n",
    "an absolute pattern": "providers: [echo]\nprompts: [file:///**/*.txt]\n",
    "a file that names itself": "providers: [echo]\ntests: file://ring.yaml\n",
    "too many combinations": f"providers: [echo]\ntests: [{{vars: {{{MANY}}}}}]\n",
    "scenarios of many configurations and tests": f"providers: [echo]\n{EACH_WITH_EACH}\n",
    "many tests of many combinations": f"providers: [echo]\ntests: [{LISTS * 100}]\n",
    "a long text in many combinations": f"providers: [echo]\ntests: [{LONG}]\n",
    "a long assertion in many scenarios": f"providers: [echo]\n{LONG_SCENARIO}\n",
    "a table that is broken": "providers: [echo]\ntests: file://broken.csv\n",
    "a file that is no text": "providers: [echo]\ntests: file://binary.yaml\n",
    "a pipe": "providers: [echo]\nprompts: [file://pipe.txt]\n",
    "a path with a NUL": 'providers: [echo]\nprompts: ["file://a\\0.txt"]\n',
}
"""What is refused in one line."""


def beside(folder: Path) -> Path:
    """A folder for a configuration, with files that it may name."""
    inside = folder / "inside"
    inside.mkdir()
    (folder / "secret.txt").write_text("secret")
    (inside / "link.txt").symlink_to(folder / "secret.txt")
    (inside / "ring.yaml").write_text("- vars: {a: 1}\n  metadata: {b: file://ring.yaml}\n")
    (inside / "broken.csv").write_text('a,b\n"1,2\n')
    (inside / "binary.yaml").write_bytes(bytes(range(256)))
    os.mkfifo(inside / "pipe.txt")
    return inside / "promptfooconfig.yaml"


def converted(file: Path, text: str) -> Conversion:
    file.write_text(text)
    found = convert(ForeignFile(file, file.parent))
    bench_text(found.bench)
    return usable(found, file.parent / "bench.yaml")


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    began = time.monotonic()

    with pytest.raises(UsageError) as refused:
        converted(beside(tmp_path), REFUSED[name])

    assert "\n" not in refused.value.message
    assert "secret" not in refused.value.message.replace("secret.txt", "")
    assert time.monotonic() - began < SOON_S


@pytest.mark.parametrize("suffix", ["yaml", "json", "jsonl", "csv"])
@pytest.mark.parametrize("name", [each.name for each in FORMATS])
def test_a_format_that_is_forced_on_another_document(name: str, suffix: str, tmp_path: Path) -> None:
    """Is an error of the input, and never one of the program."""
    file = tmp_path / f"e.{suffix}"
    for text in ("", "[]", "null", "hello", "5", "[5]", "{}", '{"input": 5}', '{"samples": 5}', '[{"a": 1}]'):
        file.write_text(text)
        with suppress(InputError):
            convert(ForeignFile(file, tmp_path), name)


def template(text: str) -> str:
    return json.dumps({"providers": ["echo"], "prompts": ["ok", text], "tests": [{"vars": {"a": "x"}}]})


LEFT: dict[str, str] = {
    "a template that loops": template(
        "{% for i in range(100000) %}{% for j in range(100000) %}x{% endfor %}{% endfor %}"
    ),
    "a template that reaches for Python": template("{{ ''.__class__.__mro__[1].__subclasses__() }}"),
    "a template of quotes that never close": template('{{ " } "' * 30),
    "a million open tags": template("{{ a }" * 150_000),
    "a variable that loops": json.dumps(
        {"providers": ["echo"], "prompts": ["{{a}}"], "tests": [{"vars": {"a": "{{ 'x' * 10 ** 10 }}"}}]}
    ),
    "keys of prototypes": json.dumps(
        {
            "providers": ["echo"],
            "prompts": ["{{ constructor.constructor('return 1')() }}", "ok"],
            "tests": [{"vars": {"__proto__": {"polluted": True}}, "assert": [{"type": "constructor"}]}],
        }
    ),
    "an infinite threshold": json.dumps(
        {
            "providers": ["echo"],
            "prompts": ["ok"],
            "tests": [{"assert": [{"type": "levenshtein", "value": "x", "threshold": "1e999"}]}],
        }
    ),
}
"""What is left, and named; the rest becomes a bench."""


@pytest.mark.parametrize("name", LEFT)
def test_it_is_left_and_named(name: str, tmp_path: Path) -> None:
    began = time.monotonic()

    found = converted(beside(tmp_path), LEFT[name])

    assert found.left
    assert all("\n" not in each.message for each in found.left)
    assert time.monotonic() - began < SOON_S


def test_what_is_broken_is_taken_out(tmp_path: Path) -> None:
    """So that the rest runs."""
    broken = {"prompts": ["ok", '{{"a": "b"}}'], "defaultTest": {"options": {"transform": "return )"}}}

    found = converted(beside(tmp_path), json.dumps({"providers": ["echo"], **broken}))

    assert [each.what for each in found.left] == ["prompt", "transform"]
    assert bench_text(found.bench).count("user: ok") == 1
    assert found.bench.transform is None


def test_a_prompt_that_cannot_be_sent_is_taken_out(tmp_path: Path) -> None:
    """Where it fails only once it is rendered, and another prompt is good; comments keep their prompts."""
    prompts = "prompts:\n  - \"{{ 'x' | replace('', 'y'*100000000) }}\"\n  # good\n  - ok\n"
    file = beside(tmp_path)

    found = converted(file, f"providers: [echo]\n{prompts}tests: [{{vars: {{a: b}}}}, {{}}]\n")

    assert [each.user for each in found.bench.prompts or ()] == ["ok"]
    assert [(each.what, str(each.place)) for each in found.left] == [("prompt", f"{file}:3")]
    assert found.comments["prompts", 0] == ("good",)
    assert len(found.bench.test_cases) == 2


RUNS: dict[str, Callable[[Path], str]] = {
    "python": lambda mark: f"import pathlib\npathlib.Path({str(mark)!r}).write_text('ran')\n",
    "javascript": lambda mark: f"require('fs').writeFileSync({json.dumps(str(mark))}, 'ran')\n",
}


@pytest.mark.parametrize("language", RUNS)
def test_no_code_is_run(language: str, tmp_path: Path) -> None:
    """Providers, prompts, tests, variables and assertions that are code stay closed."""
    file, mark = beside(tmp_path), tmp_path / "mark"
    suffix = "py" if language == "python" else "js"
    (file.parent / f"code.{suffix}").write_text(RUNS[language](mark))
    code = f"file://code.{suffix}"
    text = json.dumps(
        {
            "providers": [code, "exec:touch x"],
            "prompts": [f"{code}:ask", "exec:touch x", "Hi"],
            "tests": [code, {"vars": {"a": code}, "assert": [{"type": language, "value": code}]}],
            "extensions": [f"{code}:hook"],
            "nunjucksFilters": {"f": code},
        }
    )

    found = converted(file, text)

    assert not mark.exists()
    assert found.left
