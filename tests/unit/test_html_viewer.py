"""The engine of HTML reports: what a page holds before a script runs, its index, its policy, its memory."""

import json
import re
import tracemalloc
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final

from producer.report.html.viewer import (
    BLOCK,
    FIRST,
    MOST_VALUES,
    OTHER,
    Chip,
    Head,
    Metric,
    Page,
    PageRow,
    Rows,
    balanced,
    begin,
    end,
    strip,
    tools,
)
from tests.support.viewer_pages import blocks_of, unpacked, write_rows

NAME: Final = "</title></noscript><script>x</script>\ud800\x00\u2028"


def page(tmp_path: Path, number: int) -> str:
    """A page as text."""
    return write_rows(tmp_path / "page.html", number).read_text(encoding="utf-8")


def index(text: str) -> dict[str, Any]:
    """The index of a page."""
    found: dict[str, Any] = json.loads(text.split("data-index>")[1].split("</script>", maxsplit=1)[0])
    return found


def test_first_rows_are_elements_and_others_are_compressed(tmp_path: Path) -> None:
    """However many rows there are, none is lost; those after the first stand in blocks of a hundred."""
    for number in (0, 1, FIRST, FIRST + 1, FIRST + BLOCK, FIRST + 2 * BLOCK + 7):
        text = page(tmp_path, number)
        blocks, whole = blocks_of(text), unpacked(text)
        assert text.count("<article ") == min(number, FIRST)
        assert sum(block.count("</article><!--row-->") for block in blocks) == max(0, number - FIRST)
        assert [block.count("<!--row-->") for block in blocks[:-1]] == [BLOCK] * len(blocks[1:])
        assert re.findall(r'<article [^>]*id="(c\d+)"', whole) == [row[0] for row in index(text)["rows"]]
        noted = re.findall(r"data-packed>([\d,]+) further rows? (?:is|are) compressed", text)
        assert noted == [f"{number - FIRST:,}"] * (number > FIRST)


def test_groups_have_a_heading_with_their_number(tmp_path: Path) -> None:
    """Failures stand first, each group below its heading with the number of all its rows."""
    text = page(tmp_path, FIRST)
    assert re.findall(r'class="group"><span class="num">(\d+)</span> ([\w ]+)<', text) == [
        ("20", "cases with a failure"),
        ("80", "cases passed"),
    ]
    assert page(tmp_path, 2).count("</span> case with a failure<") == 1
    found = index(page(tmp_path, 3 * FIRST))
    assert "".join(str(row[2]) for row in found["rows"]) == "0" * 60 + "1" * 240


def test_the_index_has_letters_facets_and_numbers_of_each_row(tmp_path: Path) -> None:
    """Each row is its id, its letters, its group, its values by number, and what it is put in order by."""
    found = index(page(tmp_path, 20))
    assert found["facets"] == ["show", "tag", "reason"]
    assert found["orders"] == ["latency", "case"]
    shown, tags, reasons = found["names"]
    row = found["rows"][0]
    assert row[:3] == ["c0", "fpe", 0]
    assert [shown[at] for at in row[3]] == ["failed", "errors", "differ"]
    assert [tags[at] for at in row[4]] == ["even"]
    assert len(reasons) == 2
    assert row[6:] == [0.0, 0]


def test_reasons_count_answers_and_chips_count_rows() -> None:
    """A reason that a row has twice counts twice, and the row once; what no row has is no chip."""
    rows = Rows(facets=("reason",))
    rows.add(PageRow("a", b"", "ff", {"reason": ["too long", "too long"]}))
    rows.add(PageRow("b", b"", "fp", {"reason": ["too long"]}))
    assert rows.answers("reason") == {"too long": 3}
    assert rows.having("reason") == {"too long": 2}
    chips = [Chip("show", "failed", "Failed"), Chip("show", "errors", "Errors")]
    text = tools(rows, chips=chips, reasons=[Chip("reason", "too long", "too long")]).decode()
    assert re.findall(r"data-value=\"([\w ]+)\"[^>]*>.*?data-number>(\d+)<", text) == [
        ("failed", "2"),
        ("too long", "3"),
    ]
    rows.close()


def test_very_many_values_of_a_facet_are_bounded() -> None:
    """Values that come after thousands of others are one value: memory does not grow with them."""
    rows = Rows(facets=("reason",))
    for at in range(MOST_VALUES + 5):
        rows.add(PageRow(f"r{at}", b"", "f", {"reason": [f"reason {at}"]}))
    assert rows.having("reason")[OTHER] == 5
    rows.close()


def test_a_page_holds_whatever_it_is_given() -> None:
    """Markup, half surrogate pairs and control characters are shown in each place, and end nothing."""
    rows = Rows(facets=("tag",))
    rows.add(PageRow(NAME, b"", "f", {"tag": [NAME]}))
    metric = Metric(NAME, NAME, NAME, 0.5, 0.1, 0.9, captions=(NAME, NAME))
    text = b"".join(
        [
            begin(Page(NAME, NAME, NAME, "f", NAME, [NAME], [NAME], NAME, [(NAME, "#x")])),
            strip([metric], NAME),
            tools(rows, search=NAME, chips=[Chip("tag", NAME, NAME)], reasons=[Chip("tag", NAME, NAME)]),
            *rows.pieces(Head(1, [metric], NAME, [NAME], NAME)),
            end([(NAME, NAME)], row=NAME, cell=NAME),
        ]
    ).decode()
    assert text.count("<script") == 2
    assert text.count("</title>") == 1
    assert text.count("\\ud800\u2400") > 20
    assert "\x00" not in text


def test_the_policy_allows_the_pages_own_styles_and_scripts_only(tmp_path: Path) -> None:
    """Each style and script that stands in the page is named by its hash, and nothing else is allowed."""
    text = page(tmp_path, 1)
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)[0].replace("&#39;", "'")
    assert re.sub(r"sha256-[\w+/=]+", "…", policy) == (
        "default-src 'none'; style-src '…' '…'; script-src '…'; base-uri 'none'; form-action 'none'"
    )
    for content in re.findall(r"<(?:style|script)>(.*?)</(?:style|script)>", text, re.DOTALL):
        assert b64encode(sha256(content.encode()).digest()).decode() in policy
    assert not re.findall(r'\s(style|src|on\w+)="', text.split("<body>")[1].split("<script")[0])


def test_cards_stand_in_rows_of_like_length() -> None:
    """The last row of cards never holds one alone where more fit."""
    for most in (4, 6):
        for number in range(2, 25):
            in_row = balanced(number, most)
            assert 1 < in_row <= most
            assert (
                number % in_row != 1
                or in_row == 2
                or number < 3
                or -(-number // in_row) * in_row - number < in_row
            )


def test_rows_wait_on_disk() -> None:
    """Memory does not grow with what rows hold: 20 MB pass through a tenth of that."""
    rows = Rows(facets=("tag",), orders=("latency",))
    strip([Metric("templates are read", "once")])
    chance = Random(1)
    tracemalloc.start()
    try:
        for at in range(2_000):
            html = chance.randbytes(1_000).hex().encode() * 5
            rows.add(PageRow(f"r{at}", html, "p", {"tag": ["a"]}, {"latency": 1.0}))
        assert sum(map(len, rows.pieces(Head(1)))) > 2_000_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
