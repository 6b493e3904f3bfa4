"""The terminal and Markdown say how sure the figures of a cases run are, and what its repeats say."""

import re

import pytest

from shared.codecs.item_rows import ItemRow
from shared.contracts.case_run import CasePayload
from tests.support.case_pages import document, written
from tests.support.documents import summary_text
from tests.unit.cases.test_case_reports import row, run_info, standard


def repeated() -> list[ItemRow]:
    """One model, two cases, three times each: one always passes, one once."""
    outputs = ('{"n": 1}', '{"n": 1}', '{"n": 1}', '{"n": 2}', '{"n": 1}', "none")
    return [
        row(
            at,
            CasePayload(at // 3, "m", "Hi", at % 3, criteria={"expected": {"n": 1}}),
            output,
            ms=100 * (at + 1),
        )
        for at, output in enumerate(outputs)
    ]


def cells(text: str, name: str, sign: str = "") -> list[list[str]]:
    """The cells of all rows of tables that begin with a name."""
    if sign:
        lines = [line for line in text.splitlines() if re.match(rf"{re.escape(sign)} {name} ", line)]
        return [[cell.strip() for cell in line.strip(sign).split(sign)] for line in lines]
    return [re.split(r" {2,}", line) for line in text.splitlines() if re.match(rf"{name}  ", line)]


def test_the_terminal_says_how_sure_it_is() -> None:
    """One table has the rate, its interval, median and number of latencies; without repeats nothing more."""
    text = summary_text(document(standard(), run_info()))
    [good] = cells(text, "good")
    assert good[:5] == ["good", "100.0%", "100.0%", "34.2-100.0%", "2 of 2"]
    assert good[5:9] == ["0", "0.40s", "0.40s", "2"]
    assert "pass@k" not in text


def test_the_terminal_tells_of_repeats() -> None:
    """Mean with the error by case, the chance that one or all of k tries pass, and flaky cases."""
    sure, repeats = cells(summary_text(document(repeated(), run_info())), "m")
    assert sure[:6] == ["m", "66.7%", "18.2-94.7%", "4 of 6", "0.30s", "0.60s"]
    assert repeats == ["m", "3", "66.7% ± 33.3", "100.0%", "50.0%", "1 of 2"]


def test_a_rate_is_of_all_and_of_what_was_answered() -> None:
    """Where items ended in error both rates stand in the table; without an answer there is none."""
    text = summary_text(document(standard(), run_info()))
    assert re.search(r"^Model +Pass rate +Of answered ", text, re.MULTILINE)
    [nothing] = cells(summary_text(document(standard()[1:2], run_info())), "slow")
    assert nothing[:4] == ["slow", "no verdicts", "0 of 1", "1"]


def test_markdown_has_the_figures_of_the_terminal() -> None:
    """The rate, its interval and what it is of come first; repeats have a section of their own."""
    text = written("md", repeated(), run_info())
    heading = "| Model | Pass rate | 95% interval | Passed | P50 | P95 | P99 | Timed | Tokens/s | Cost |"
    assert heading in text.splitlines()
    one, repeats = cells(text, "m", "|")[:2]
    assert one[:4] == ["m", "66.7%", "18.2-94.7%", "4 of 6"]
    assert one[4:] == ["0.30s", "0.60s", "0.60s", "6", "42.9", "$0.0012"]
    assert text.index("## Repeats") < text.index("## Failures")
    assert repeats == ["m", "3", "66.7% ± 33.3", "100.0%", "50.0%", "1 of 2"]
    assert "## Repeats" not in written("md", standard(), run_info())
    assert re.findall(r"^\| (case 2[^|]*) \|", text, re.MULTILINE) == ["case 2", "case 2 #3"]


@pytest.mark.parametrize("columns", ["80", "140"])
def test_the_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """At 80 and at 140 columns every figure is there in full, and no line is longer."""
    monkeypatch.setenv("COLUMNS", columns)
    text = summary_text(document(repeated(), run_info()))
    assert max(map(len, text.splitlines())) <= int(columns)
    assert "…" not in text
    assert all(figure in text for figure in ("18.2-94.7%", "66.7% ± 33.3", "1 of 2", "$0.0012"))


@pytest.mark.parametrize("columns", ["40", "60"])
def test_a_narrow_terminal_loses_no_figure(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    """Where a table does not fit, its rows are written in words: names and figures are there in full."""
    monkeypatch.setenv("COLUMNS", columns)
    name = "anthropic/claude-haiku-4-5"
    rows = [row(0, CasePayload(0, name, "Hi", 0, criteria={"expected": {"n": 1}}), '{"n": 1}', ms=100)]
    text = summary_text(document(rows, run_info(models=[name])))
    assert "…" not in text
    assert name in text.splitlines()
    words = ("Pass rate 100.0%", "Passed 1 of 1", "errors 0", "P95 0.10s")
    assert all(word in text for word in words)
    shown = text.split("passed 1")[0].split("\n\n", 1)[1]
    assert max(map(len, shown.splitlines())) <= int(columns)


def test_freeform_runs_have_no_pass_rates() -> None:
    """Nothing was checked, so there is no interval and no repeat to tell of; the number of latencies is."""
    rows = [row(at, CasePayload(0, "m", "Hi", at), "Hello", ms=450) for at in range(2)]
    for text in (
        summary_text(document(rows, run_info("freeform", ("m",)))),
        written("md", rows, run_info("freeform", ("m",))),
    ):
        assert "interval" not in text
        assert "pass@k" not in text
        assert re.search(r" Timed ", text)
        assert "not checked" in text


def test_names_are_cut_in_their_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80 columns a long name gives way to figures, and both its ends stay."""
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"a-provider-of-models/claude-haiku-4-{end}-with-a-long-name-{end}" for end in "56"]
    rows = [
        row(at, CasePayload(0, name, "Hi", 0, criteria={"expected": {"n": 1}}), '{"n": 1}', ms=100)
        for at, name in enumerate(names)
    ]
    lines = summary_text(document(rows, run_info(models=names))).splitlines()
    shown = [line for line in lines if line.startswith("a-")]
    assert [re.split(" {2,}", line)[0][-2:] for line in shown] == ["-5", "-6"]
    assert all("…" in line and "100.0%" in line for line in shown)
    assert max(map(len, lines)) <= 80
