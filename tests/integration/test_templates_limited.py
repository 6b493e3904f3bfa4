"""Templates that would take minutes or gigabytes end within their limits, in one line with the place."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from shared.errors import WrongInput
from shared.templates.template_process import IDLE_S, TemplateProcess
from shared.templates.template_rendering import render
from tests.support.benches import refusal, write
from tests.support.eventually import eventually
from tests.support.processes import is_running

TIME = "the template takes longer than 2 s"
MEMORY = "the template takes more than 256 MB of memory"
GREEDY = {
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": TIME,
    "{{ [1]|slice(1000000000)|list|length }}": TIME,
    "{{ 'a'.ljust(4000000000)|length }}": MEMORY,
    "{{ 'a'.zfill(4000000000)|length }}": MEMORY,
    "{{ '%4000000000d'|format(5)|length }}": MEMORY,
    "{{ '%1000000000d' % 1 }}": MEMORY,
    "{{ 'a'|indent(1000000000) }}": MEMORY,
    "{{ 'a'|center(1000000000) }}": MEMORY,
    "{% set n = namespace(s='a') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}": MEMORY,
}
BENCH = """name: bench
models: [m]
prompts:
  - {id: greedy, user: "{{ 'a'.ljust(4000000000) }}"}
test_cases:
  - {id: fr, vars: {country: France}}
  - {id: de, vars: {country: Germany}}
"""


def template_processes() -> list[psutil.Process]:
    """Processes that render templates for this one."""
    children = [each for each in psutil.Process().children() if is_running(each.pid)]
    return [each for each in children if "shared.templates.template_process" in each.cmdline()]


def none_left() -> None:
    """Asserts that there are none."""
    assert template_processes() == []


@pytest.fixture
def process() -> Iterator[TemplateProcess]:
    """A process that ends with the test."""
    started = TemplateProcess()
    yield started
    started.close()


@pytest.mark.parametrize(("text", "what"), GREEDY.items())
def test_a_greedy_template_is_ended(process: TemplateProcess, text: str, what: str) -> None:
    """It is refused by the limit that it meets, and the next template is rendered."""
    if what == MEMORY and not Path("/proc/self/statm").exists():
        pytest.skip("not permitted here: this system has no limit of memory")
    with pytest.raises(WrongInput, match=what):
        process.render(text, {})
    assert process.render("{{ x ~ x }}", {"x": "ü\ud800"}) == "ü\ud800" * 2


def test_a_template_is_tried_once(process: TemplateProcess) -> None:
    """Thousands of cases do not wait 2 s each: what went beyond a limit is refused at once."""
    text = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    for _ in range(50):
        with pytest.raises(WrongInput, match=TIME):
            process.render(text, {})


def test_the_refusal_has_its_place(tmp_path: Path) -> None:
    """File, line, case and prompt are in one line, and what to do in the hint."""
    text = refusal(write(tmp_path, BENCH))
    assert text.startswith("bench.config.yaml:6: test_cases[0] (case 'fr'): prompt 'greedy': " + MEMORY)
    assert text.endswith("| make its loops and texts shorter")
    check = "default_checks: [{contains: \"{{ 'a'.ljust(4000000000) }}\"}]\n"
    bench = "name: bench\nsystem_prompt: Hi\nmodels: [m]\n" + check + "test_cases: [{id: fr, input: Hi}]\n"
    text = refusal(write(tmp_path, bench))
    assert text.startswith("bench.config.yaml:4: default_checks[0].contains (case 'fr'): " + MEMORY)


def test_a_value_that_is_missing_in_a_list_is_refused() -> None:
    """`[Undefined]` is sent to no model."""
    for text in ("{{ [a]|map(attribute='nope')|list }}", "{{ {'k': a.nope} }}", "{{ (a.nope, 1)|list }}"):
        with pytest.raises(WrongInput, match="'nope' is missing"):
            render(text, {"a": {"b": 1}})


def test_mistakes_are_the_same_in_both_places(process: TemplateProcess) -> None:
    """A filter that does not exist, and an exception, have line and words; the process goes on."""
    with pytest.raises(WrongInput, match="No filter named 'nope'") as caught:
        process.render("\n{{ x|nope }}", None)
    assert caught.value.line == 2
    with pytest.raises(WrongInput, match="ZeroDivisionError: division by zero"):
        process.render("{{ 1 / x }}", {"x": 0})
    with pytest.raises(WrongInput, match="SecurityError"):
        process.render("{{ ''.__class__.mro() }}", {})


def test_a_process_that_has_ended_is_replaced(process: TemplateProcess) -> None:
    """It ends when it is idle, or is killed: the next template is rendered by a new one."""
    assert process.render("{{ x ~ 1 }}", {"x": 1}) == "11"
    for child in template_processes():
        child.kill()
        child.wait()
    assert process.render("{{ x ~ 2 }}", {"x": 1}) == "12"
    eventually(none_left, IDLE_S * 10)
    assert process.render("{{ x ~ 3 }}", {"x": 1}) == "13"


def test_ordinary_templates_start_no_process() -> None:
    """Variables and filters are rendered at once."""
    eventually(none_left, IDLE_S * 10)
    assert render("In {{ x|upper }}{% for i in y %}, {{ i }}{% endfor %}", {"x": "a", "y": [1]}) == "In A, 1"
    none_left()
