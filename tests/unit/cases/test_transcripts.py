"""Conversations with tools in the reports of cases: who speaks, as it was sent, in every format."""

from html import unescape
from pathlib import Path
from typing import Any, Final

import pytest

from producer.aggregate.compared_items import CaseLine, ComparedCase
from producer.report.comparison.item_texts import texts_of_case
from shared.contracts.case_run import CasePayload
from shared.contracts.sent_messages import messages_as_sent
from tests.support.case_pages import item_row, run_info, write_page

CALL: Final[dict[str, Any]] = {
    "id": "call-1",
    "type": "function",
    "function": {"name": "find_flights", "arguments": '{"to": "Rome"}'},
}
AGENT: Final = CasePayload(
    0,
    "m",
    "AZ 61, 07:15",
    id="booking",
    criteria={"expected": {"booked": True}},
    messages=[
        {"role": "user", "content": "Book me a flight to Rome."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call-1", "content": "AZ 61, 07:15"},
    ],
)


def text_of(tmp_path: Path, suffix: str, name: str) -> str:
    """Writes a run of one failed case in a format."""
    rows = [item_row(0, AGENT, "I booked it.", ms=100, cost=None)]
    page = write_page(tmp_path / f"report.{suffix}", run_info(["m"], 1), rows, name=name)
    return unescape(page.read_text(encoding="utf-8"))


def test_the_page_names_calls_and_results_of_tools(tmp_path: Path) -> None:
    """A tool's result is none of the user's words, and a message without content is not shown as null."""
    text = text_of(tmp_path, "html", "html")
    for words in ("tool result find_flights", 'find_flights({"to": "Rome"})', "Book me a flight to Rome."):
        assert words in text
    assert ">null<" not in text


@pytest.mark.parametrize(("suffix", "name"), [("xml", "junit"), ("md", "md")])
def test_other_reports_name_them_too(tmp_path: Path, suffix: str, name: str) -> None:
    """JUnit has the whole conversation, a table of Markdown its last message."""
    text = text_of(tmp_path, suffix, name)
    assert "tool result find_flights: AZ 61, 07:15" in text.replace("\\_", "_")
    assert "null" not in text
    if name == "junit":
        assert 'user: Book me a flight to Rome.\ntool call: find_flights({"to": "Rome"})\n' in text


def test_a_comparison_shows_the_same_conversation() -> None:
    """Both sides of an item are asked what its model was sent."""
    result = ComparedCase(model="m", case_index=0, raw_output="I booked it.", passed=True)
    messages = messages_as_sent(AGENT, "Be brief.")
    found = texts_of_case(CaseLine(outcome="passed", result=result, messages=messages))
    assert found.system == "Be brief."
    assert found.asked.splitlines() == [
        "user: Book me a flight to Rome.",
        'tool call: find_flights({"to": "Rome"})',
        "tool result find_flights: AZ 61, 07:15",
    ]
