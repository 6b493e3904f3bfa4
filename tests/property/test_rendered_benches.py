"""Explores prompts, variables and checks: benches become items that travel, or one line that says why."""

import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from producer.cases.load import PlannedRun, plan_run
from producer.load.source import Source
from producer.options import CaseChoice
from shared.contracts.case_run import decode_case, encode_case
from shared.errors import ProctorError

NAMES = st.sampled_from(["city", "x", "input", "size"])
PIECES = st.sampled_from(
    [
        "Hi ",
        "{{ city }}",
        "{{ x }}",
        "{{ input }}",
        "{{ x.y }}",
        "{% if x %}",
        "{% endif %}",
        "{{",
        "}}",
        "{#",
        "é\n",
    ]
) | st.text(max_size=5)
TEMPLATES = st.lists(PIECES, min_size=1, max_size=4).map("".join)
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)
VARS = st.dictionaries(NAMES, VALUES, max_size=3)
CHECKS = st.one_of(
    st.builds(lambda text: {"contains": text}, TEMPLATES),
    st.builds(lambda text, least: {"equals": text, "at_least": least}, TEMPLATES, st.floats(-1, 2)),
    st.builds(lambda inner: {"not": {"contains_any": inner}}, st.lists(TEMPLATES, max_size=2)),
    st.builds(lambda key, value: {key: value}, st.text(max_size=5), VALUES),
    st.sampled_from(["refusal", "contains", "json", ""]),
    VALUES,
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEMPLATES}
    ),
    max_size=3,
)
CASES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.text(max_size=4),
        "input": TEMPLATES,
        "vars": VARS,
        "expand": st.booleans(),
        "messages": MESSAGES,
        "system_prompt": TEMPLATES,
        "checks": st.lists(CHECKS, max_size=3),
        "at_least": st.floats(0, 1),
        "default_checks": st.sampled_from([False]),
        "tags": st.lists(st.text(max_size=3), max_size=2),
    },
)
PROMPTS = TEMPLATES | st.fixed_dictionaries(
    {}, optional={"id": st.text(max_size=3), "system": TEMPLATES, "user": TEMPLATES}
)
BENCHES = st.fixed_dictionaries(
    {
        "name": st.just("n"),
        "models": st.just(["m", "n"]),
        "test_cases": st.lists(CASES, min_size=1, max_size=3),
    },
    optional={
        "system_prompt": TEMPLATES,
        "prompts": st.lists(PROMPTS, max_size=2),
        "vars": VARS,
        "default_checks": st.lists(CHECKS, max_size=2),
    },
)


def planned(source: Source) -> PlannedRun | ProctorError:
    """The run of a bench, or why there is none."""
    try:
        return plan_run(source, CaseChoice())
    except ProctorError as error:
        return error


@given(BENCHES)
def test_benches_become_items_or_one_line(bench: dict[str, Any]) -> None:
    """As many items as planned, each as it is read again; or an error for one line, with exit code 2."""
    source = Source("-", stdin=io.BytesIO(json.dumps(bench).encode()))
    plan = planned(source)
    if isinstance(plan, ProctorError):
        assert plan.exit_code == 2
        assert f"{plan.message} {plan.hint or ''}".isprintable()
        return
    items = list(plan.items())
    assert len(items) == plan.total
    assert [encode_case(decode_case(encode_case(item))) for item in items] == [*map(encode_case, items)]
    assert {item.prompt_id or "" for item in items} == {*(plan.run.prompts or [""])}
