"""What people read of judges: figures with their n, and nothing where there is nothing to say."""

import json
import re

from producer.cases.report.details import VerboseDetails
from tests.support.case_pages import document, written
from tests.support.documents import more_text, summary_text
from tests.unit.aggregate.test_judging import judged
from tests.unit.cases.test_case_reports import HOSTILE, run_info

INFO = run_info(models=("m",))


def test_a_panel_stands_under_the_rates_it_made() -> None:
    """Terminal and Markdown have agreement, sameness and labels, and each judge of the panel."""
    rows = [
        judged(0, ["PASS", "PASS", "FAIL"], label="pass"),
        judged(1, ["PASS", "PASS", "PASS"], label="fail"),
        judged(1, ["PASS", "PASS", "PASS"], label="fail", repeat=1),
        judged(2, ["FAIL", "FAIL", "FAIL"], label="fail"),
        judged(3, ["PASS", "hm", None]),
    ]
    text, page = more_text(document(rows, INFO)), written("md", rows, INFO)
    for sentence in (
        "a panel of 3 judges accepted 3 of 4 non-identical outputs (75.0%, 95% interval 30.1-95.4%)",
        "panel agreement: Krippendorff's alpha 0.",
        "; unanimous 3 of 5 (60.0%,",
        "repeatedly judged outputs with the same verdict each time: 1 of 1 (100.0%,",
        "agrees with human labels: 2 of 4 (50.0%,",
        "PASS: precision 1 of 3 (33.3%,",
        "recall 1 of 1 (100.0%,",
        "PASS correct 1, wrong 2; not PASS correct 1, wrong 0",
        "only 3 labelled answers: the figures against labels are imprecise",
    ):
        assert sentence in text, sentence
        assert sentence in page, sentence
    assert "judged 4 by 14 votes · judge unreachable 1" in summary_text(document(rows, INFO))
    [judge] = re.findall(r"^c  .*", text, re.MULTILINE)
    assert re.split(r" {2,}", judge)[:6] == ["c", "2", "2", "0", "1", "75.0% of 4"]
    heads = ["unreachable", "agrees with panel", "consistent", "agrees with labels"]
    assert f"| Judge | PASS | FAIL | unclear | {' | '.join(heads)} |" in page
    assert json.loads(written("json", rows, INFO))["summary"]["judge"]["agreement"]["judges"] == 3


def test_a_single_judge_without_labels_adds_nothing() -> None:
    """Its calls are counted as ever, and no section is opened."""
    rows = [judged(0, ["PASS"]), judged(1, ["FAIL"])]
    text = summary_text(document(rows, INFO))
    assert text.endswith("· judged 2")
    assert more_text(document(rows, INFO)) == ""
    assert "## Judges" not in written("md", rows, INFO)


def test_a_single_judge_has_no_table_of_judges() -> None:
    """What repeats and labels show of it is written in lines."""
    rows = [judged(0, ["PASS"], label="pass"), judged(0, ["FAIL"], label="pass", repeat=1)]
    text = more_text(document(rows, INFO))
    assert "a accepted 1 of 2 non-identical outputs (50.0%," in text
    assert "the same verdict each time: 0 of 1 (0.0%," in text
    assert "| Judge |" not in written("md", rows, INFO)


def test_labels_that_no_judge_saw_are_reported() -> None:
    """Labelled answers that were equal, or none at all, say nothing about the judge."""
    rows = [judged(case, ["PASS"], output='{"n": 1}', label="pass") for case in range(2)]
    assert "2 labelled answers, none of them with a verdict of a judge" in more_text(document(rows, INFO))


def test_a_panel_of_one_mind_has_no_alpha() -> None:
    """Where all say the same word, chance agrees as well as they do."""
    text = more_text(document([judged(0, ["PASS", "PASS"])], INFO))
    assert "alpha undefined (all verdicts are the same); unanimous 1 of 1 (100.0%," in text


def test_verbose_tells_what_each_judge_said() -> None:
    """In one line, and not a second time as data; hostile replies and names are only text."""
    details = VerboseDetails()
    details.page([judged(0, [HOSTILE, "FAIL", None])])
    text = details.text()
    assert "reply: a: <img" in text
    assert "b: FAIL; c: could not be asked" in text
    assert "votes:" not in text
    assert "<img" not in written("md", [judged(0, [HOSTILE, "FAIL", None])], INFO)
