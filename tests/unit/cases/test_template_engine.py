"""Which templates are rendered at once: those that need about the time and memory of their variables."""

import pytest

from shared.errors import WrongInput
from shared.templates.template_engine import is_harmless, parsed
from shared.templates.template_rendering import render
from shared.templates.template_texts import is_small

HARMLESS = (
    "Capital of {{ country }}?",
    "{{ user.name|upper|trim }} {{ rows[0]['a'] }} {# note #}",
    "{% if x is defined and x != 'a' %}{{ x }}{% elif y in z %}b{% else %}c{% endif %}",
    "{{ x if y else z }}{{ x|default('none', true) }}{{ x|tojson(indent=2) }}",
    "{% for row in rows if row.a %}{{ loop.index }}. {{ row.q }}{% endfor %}{{ rows|join(', ')|upper }}",
    "{% for key, value in pairs %}{{ key }}{% endfor %}",
)
OTHERS = (
    "{% for a in rows %}{% for b in rows %}x{% endfor %}{% endfor %}",
    "{% for a in range(99999) %}{% endfor %}",
    "{% for a in rows recursive %}{{ loop(a.rows) }}{% endfor %}",
    "{{ 'a'|center(1000000000) }}",
    "{{ x|indent(2) }}",
    "{{ x.ljust(9) }}",
    "{{ '%9d' % 1 }}",
    "{{ x ~ x }}",
    "{{ x + x }}",
    "{{ x|truncate(9 * 9) }}",
    "{{ x|join(y) }}",
    "{{ x|join('123456789') }}",
    "{{ x|join(', ')|list|join(', ') }}",
    "{{ x|tojson|tojson }}",
    "{{ x|default(*y) }}",
    "{{ x[y] }}",
    "{% set x = 1 %}",
    "{% filter upper %}{{ x }}{% endfilter %}",
    "{% macro m() %}{% endmacro %}{{ m() }}",
    "{{ x }}" * 200,
)


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_templates_are_rendered_at_once(text: str) -> None:
    """Variables, conditions, one loop, and filters that make nothing much longer."""
    assert is_harmless(parsed(text))


@pytest.mark.parametrize("text", OTHERS)
def test_all_else_is_rendered_elsewhere(text: str) -> None:
    """Whatever can loop or grow beyond its variables, or is not listed."""
    assert not is_harmless(parsed(text))


def test_large_variables_are_not_small() -> None:
    """Texts, items and keys count, at any depth."""
    assert is_small([[1, {"a": "b" * 4_000}]])
    assert not is_small([[1, {"a": "b" * 5_000}]])
    assert not is_small([[0] * 5_000])
    assert not is_small([[[[[[["b" * 5_000]]]]]]])


def test_a_text_that_is_too_long_is_not_built() -> None:
    """Rendering ends where a prompt may not be longer, however much would follow."""
    with pytest.raises(WrongInput, match="more than 1,000,000 characters"):
        render("{{ x }}" * 150, {"x": "a" * 500_000})
