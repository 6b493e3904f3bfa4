"""Options of calls are merged, and templates rendered, by one rule each, whatever they are."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.merged_options import merge
from shared.templates.template_rendering import render

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OPTIONS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(OPTIONS, OPTIONS, OPTIONS)
def test_levels_are_merged_one_after_the_other(
    one: dict[str, Any], two: dict[str, Any], three: dict[str, Any]
) -> None:
    """Bench, model and prompt at once are the same as the merged pair below the prompt."""
    assert merge(one, two, three) == merge(merge(one, two), three)
    assert merge(one) == merge(one, one) == merge({}, one) == one


@given(OPTIONS, OPTIONS)
def test_the_later_level_wins(below: dict[str, Any], above: dict[str, Any]) -> None:
    """What stands above is taken, what stands only below stays, and nothing else is there."""
    found = merge(below, above)
    assert found.keys() == below.keys() | above.keys()
    for name, value in found.items():
        if name not in above:
            assert value == below[name]
        elif isinstance(above[name], dict) and isinstance(below.get(name), dict):
            assert value == merge(below[name], above[name])
        else:
            assert value == above[name]


@given(st.text(max_size=30).filter(lambda text: not {"{", "\r"} & {*text}), st.text(max_size=30))
def test_values_are_never_templates(before: str, value: str) -> None:
    """A variable stands in the text as it is, whatever it looks like."""
    assert render(before + "{{ x }}", {"x": value}) == before + value
