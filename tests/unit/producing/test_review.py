"""Labels in files, and the order in which reviewers see answers."""

from pathlib import Path

import pytest

from producer.cases.facts import facts_of_cases
from producer.load.source import Source
from producer.review.answer_labels import AnswerLabel, Judgement, checked, cohen_kappa, reviewed
from producer.review.label_files import read_rows, written
from producer.review.queue import Candidate, Queue, progress, sampled
from producer.service_documents import LabelRow
from shared.errors import UsageError
from tests.unit.aggregate.test_judging import judged

ROWS = [
    LabelRow(run_id="r", item_id="case-0", name="fr · m", verdict="pass", reviewer="ann", tags=["a", "b"]),
    LabelRow(name='quo"te, é', verdict="defer", reviewer="bob", note="line\nbreak\u2028s", answer="00ff"),
]


def said(position: int, reviewer: str, verdict: str) -> AnswerLabel:
    """A label without more."""
    return AnswerLabel(position=position, reviewer=reviewer, verdict=Judgement(verdict))


@pytest.mark.parametrize("name", ["labels.jsonl", "labels.csv"])
def test_what_is_exported_is_imported(tmp_path: Path, name: str) -> None:
    """Both forms give back every field, tags, quotes, commas and line breaks included."""
    (tmp_path / name).write_bytes(written(ROWS, name))
    assert [row for _, row in read_rows(Source(tmp_path / name))] == ROWS


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "name,verdict\nfr,maybe\n", "a.csv:2: Invalid enum value 'maybe' - at `$.verdict`"),
        ("a.csv", "name,verdct\nfr,pass\n", "a.csv:2: unknown key 'verdct'"),
        ("a.csv", "name,verdict\nfr,pass,more\n", "a.csv:2: more cells than columns"),
        ("a.jsonl", '\n{"verdict": "pass"}\n', "a.jsonl:2: no item is named"),
        ("a.jsonl", '{"name": "fr", "verdict": "pass", "tags": 5}', "a.jsonl:1: Expected `array`, got `int`"),
        ("a.jsonl", "[1]", "a.jsonl:1: a label is an object"),
        ("a.jsonl", "{", "a.jsonl:1: "),
        ("a.jsonl", b"\n\xff", "a.jsonl:2: is not UTF-8 text"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    """One line: the file, the line and what is wrong."""
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError) as caught:
        read_rows(Source(path))
    assert caught.value.message.removeprefix(f"{tmp_path}/").startswith(message)


@pytest.mark.parametrize(
    "label",
    [
        AnswerLabel(position=0, reviewer="a b", verdict=Judgement.PASS),
        AnswerLabel(position=0, reviewer="", verdict=Judgement.PASS),
        AnswerLabel(position=0, reviewer="a", verdict=Judgement.PASS, note="x" * 4_001),
        AnswerLabel(position=0, reviewer="a", verdict=Judgement.PASS, tags=["x"] * 21),
    ],
)
def test_a_label_has_bounds(label: AnswerLabel) -> None:
    """Names with spaces, long notes and many tags are refused."""
    with pytest.raises(UsageError):
        checked(label)


def test_what_is_doubtful_comes_first() -> None:
    """A panel that is divided and a score at its bound come before an answer on which all agree."""
    rows = [judged(0, ["PASS", "PASS"]), judged(1, ["PASS", "FAIL"]), judged(2, ["PASS", "PASS", "FAIL"])]
    doubts = [facts_of_cases(["doubt"])(row).doubt or 0.0 for row in rows]
    assert doubts[1] == 1.0 > doubts[2] > doubts[0] == 0.0
    candidates = [Candidate(at, doubt) for at, doubt in enumerate(doubts)]
    assert list(progress(candidates, [], Queue(), run="r", reviewer="ann").next) == [1, 2, 0]


def test_enough_reviewers_are_enough() -> None:
    """An answer with two decided labels is not shown to a third; a deferred one is, but not to the same."""
    labels = [said(0, "ann", "pass"), said(0, "bob", "fail"), said(1, "ann", "defer")]
    two = Queue(reviewers=2)
    shown = {
        who: set(progress(map(Candidate, range(3)), labels, two, run="r", reviewer=who).next)
        for who in ("ann", "bob", "cyd")
    }
    assert shown == {"ann": {2}, "bob": {1, 2}, "cyd": {1, 2}}
    mine = progress(map(Candidate, range(3)), labels, two, run="r", reviewer="ann")
    assert (mine.done, mine.total) == (2, 3)


def test_a_sample_is_the_same_for_all() -> None:
    """It depends on the run: two reviewers get the same answers, two runs other ones."""
    chosen = {run: {each.position for each in sampled(map(Candidate, range(500)), 20, run)} for run in "ab"}
    assert chosen["a"] == {each.position for each in sampled(map(Candidate, range(499, -1, -1)), 20, "a")}
    assert chosen["a"] != chosen["b"]
    assert len(chosen["a"]) == 20


def test_agreement_of_three_is_alpha() -> None:
    """With two reviewers it is Cohen's kappa, with more Krippendorff's alpha; chance alone has neither."""
    two = [said(at, who, word) for at in range(4) for who, word in (("a", "pass"), ("b", "pass"))]
    assert reviewed(two).kappa is None
    assert cohen_kappa([]) is None
    both = [*two, said(4, "a", "fail"), said(4, "b", "fail")]
    assert reviewed(both).kappa == 1.0
    third = reviewed([*both, said(0, "c", "fail")])
    assert third.kappa is not None
    assert 0 < third.kappa < 1
    assert third.verdicts[0] is True
