"""A page of generated rows, written by the engine of HTML reports as a kind's own page does it."""

import re
from base64 import b64decode
from pathlib import Path
from typing import Final
from zlib import decompress

from producer.report.html.viewer import (
    Chip,
    Fact,
    Group,
    Head,
    Metric,
    Page,
    PageRow,
    Rows,
    begin,
    end,
    strip,
    tools,
)

MARKS: Final = {"p": "✓", "f": "✗", "e": "!"}
WHY: Final = {"p": "", "f": "/window/days is {}, expected 14", "e": "no answer after 60 s"}
GROUPS: Final = (
    Group("case with a failure", "cases with a failure"),
    Group("case passed", "cases passed"),
)
CHIPS: Final = (
    Chip("show", "failed", "Failed"),
    Chip("show", "errors", "Errors"),
    Chip("show", "differ", "Models differ"),
    Chip("tag", "even", "even"),
    Chip("tag", "odd", "odd"),
)
TABLE: Final = b"""<section class="more"><table class="data" data-sort id="costs">
<thead><tr><th>Model</th><th class="n">Cost</th></tr></thead>
<tbody><tr><th>a</th><td class="n" data-value="1">1</td></tr>
<tr><th>b</th><td class="n" data-value="">-</td></tr>
<tr><th>c</th><td class="n" data-value="3">3</td></tr></tbody></table></section>"""


PACKED: Final = re.compile(r'<script type="text/plain" data-block>([\w+/=]+)</script>')


def blocks_of(page: str) -> list[str]:
    """What is in each block of compressed rows."""
    return [decompress(b64decode(block)).decode() for block in PACKED.findall(page)]


def unpacked(page: str) -> str:
    """A page with its compressed rows as elements."""
    return PACKED.sub(lambda found: decompress(b64decode(found[1])).decode(), page)


def letters_of(at: int, cells: int) -> str:
    """Every fifth row has a failure, every tenth an error beside it."""
    if at % 5:
        return "p" * cells
    return ("f" + "p" * cells)[: cells - 1] + ("e" if at % 10 == 0 else "p")


def row_of(at: int, cells: int, text: str = "") -> PageRow:
    """One row; `text` is markup that stands in each answer."""
    letters = letters_of(at, cells)
    lead = f'<div class="lead"><b>case-{at}</b><p>What is {at}?</p><div data-part="asked" hidden>'
    parts = [f'<article class="row" data-row id="c{at}" data-title="case-{at}">{lead}']
    parts.append(f'<p class="askedtext">asked {at}</p></div></div>')
    for number, letter in enumerate(letters):
        why = WHY[letter].format(at)
        parts.append(
            f'<details class="cell is-{letter}" data-name="model-{number}"><summary><span class="head">'
            f'<span class="mark {letter}">{MARKS[letter]}</span><b class="mname">model-{number}</b>'
            f'<b class="reasontext {letter}">{why}</b><span class="num">0.84 s</span></span>'
            f'<span class="out">answer {at} of model {number} {text}</span></summary><div class="body">'
            f'<section><p class="outcome">outcome {at}.{number}</p></section>'
            "<section data-others hidden><h3>Same case, other models</h3></section>"
            '<section><div data-from="asked"></div><div class="quote"><h4>label</h4>'
            f'<pre class="box" data-copy>needle-{at} &#34;quote&#34; {text}</pre></div></section>'
            f'<section><div class="cmd"><pre data-copy data-key="y">again {at}</pre></div></section>'
            "</div></details>"
        )
    reasons = [WHY[letter].format("…") for letter in letters if letter != "p"]
    facets = {"tag": ["odd" if at % 2 else "even"], "reason": reasons}
    html = "".join([*parts, "</article>"]).encode()
    return PageRow(f"c{at}", html, letters, facets, {"latency": float(at * 7 % 101), "case": at})


def write_rows(path: Path, number: int, *, cells: int = 3, text: str = "") -> Path:
    """Writes a page of so many rows."""
    rows = Rows(facets=("tag", "reason"), orders=("latency", "case"), groups=GROUPS)
    for at in range(number):
        row = row_of(at, cells, text)
        rows.add(row, group=int(set(row.outcomes) == {"p"}))
    facts = [Fact("P95", "1.2 s"), Fact("✗ 3 failed", tone="f")]
    metrics = [
        Metric(f"model-{at}", "91.7%", "acme", 0.917, 0.65, 0.99, 0.9, ("95%: 65 to 99", "11 of 12"), facts)
        for at in range(cells)
    ]
    page = Page("cases", "Support desk", "k7m2", "f", "26 of 36 passed", ["A doubt."], ["12 cases"])
    with path.open("wb") as out:
        out.write(begin(page))
        out.write(strip([Metric("coverage", "50.0%", at=0.5, low=0.4, high=0.6)]))
        out.write(
            tools(
                rows,
                search="Search inputs and outputs",
                chips=CHIPS,
                choices=[("tag", "Tag")],
                orders=[("-latency", "slowest first"), ("case", "run order")],
                reasons=[Chip("reason", name, name) for name in rows.answers("reason")],
                lead="failed answers:",
            )
        )
        out.writelines(rows.pieces(Head(cells, metrics, "Case", ["failures first"])))
        out.write(TABLE)
        out.write(end([("run", "k7m2")]))
    return path
