"""Which answers to a case are asked for: those that can change its verdict, whatever crashes."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.case_run import CasePayload, Quorum, Recorded, encode_case
from shared.names import Outcome, RunState
from worker.executors.case_agenda import CaseAgenda

PASSED, FAILED, ERROR, SKIPPED = Outcome.PASSED, Outcome.FAILED, Outcome.ERROR, Outcome.SKIPPED


def item(index: int, repeat: int, quorum: Quorum | None, **more: Any) -> Any:
    """An item as a claim hands it out."""
    payload = encode_case(CasePayload(index - repeat, "m", "Hi", repeat=repeat, quorum=quorum, **more))
    return SimpleNamespace(payload=payload, claimed=SimpleNamespace(index=str(index)))


def agenda(items: Sequence[Any], rows: dict[int, Outcome], **more: Any) -> CaseAgenda:
    """The agenda of a claim, where some answers are committed already."""

    def outcomes(indexes: Sequence[int]) -> dict[int, Outcome]:
        return {index: rows[index] for index in indexes if index in rows}

    return CaseAgenda(items, outcomes, **{"asks_all": False, "fail_fast": False, **more})


class Case(NamedTuple):
    """A case, and how its answers would end."""

    quorum: Quorum
    endings: list[Outcome]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Cases of up to 12 answers."""
    times = draw(st.integers(1, 12))
    endings = draw(st.lists(st.sampled_from([PASSED, FAILED, ERROR]), min_size=times, max_size=times))
    return Case(Quorum(draw(st.integers(1, times)), times), endings)


@given(case=cases(), data=st.data())
def test_what_is_left_out_never_changes_a_verdict(case: Case, data: st.DataObject) -> None:
    """Claims may crash, have a part, end in any order and not see each other: rows decide alike."""
    rows, open_items = dict[int, Outcome](), set(range(case.quorum.times))
    while open_items:
        part = sorted(data.draw(st.sets(st.sampled_from(sorted(open_items)), min_size=1)))
        committed = dict(data.draw(st.permutations([*rows.items()])))  # a claim may not see the newest rows
        seen = dict([*committed.items()][: data.draw(st.integers(0, len(committed)))])
        claim = agenda([item(at, at, case.quorum) for at in part], seen)
        under_way, is_crashed = list[Any](), False
        while not is_crashed:
            for each, _ in claim.settled():
                rows[int(each.claimed.index)] = SKIPPED
            under_way += claim.due()
            if not under_way:
                break
            each = under_way.pop(data.draw(st.integers(0, len(under_way) - 1)))
            rows[int(each.claimed.index)] = case.endings[int(each.claimed.index)]
            claim.ended(each, case.endings[int(each.claimed.index)])
            is_crashed = data.draw(st.integers(0, 9)) == 0
        open_items -= rows.keys()

    def verdict(outcomes: Sequence[Outcome]) -> Outcome:
        return case.quorum.outcome({each: outcomes.count(each) for each in outcomes})

    assert verdict([*rows.values()]) is verdict(case.endings)


@given(case=cases())
def test_no_call_is_made_that_could_have_been_left_out(case: Case) -> None:
    """One claim makes the calls that would be made one after the other, several at a time."""
    claim = agenda([item(at, at, case.quorum) for at in range(case.quorum.times)], {})
    asked = 0
    while begun := claim.due():
        asked += len(begun)
        for each in begun:
            claim.ended(each, case.endings[int(each.claimed.index)])
    needed, counts = 0, {PASSED: 0, FAILED: 0, ERROR: 0}
    while needed < case.quorum.times and case.quorum.left(counts[PASSED], counts[FAILED]):
        counts[case.endings[needed]] += 1
        needed += 1
    assert asked == needed
    assert len(claim.settled()) == case.quorum.times - asked
    assert not claim.settled()


def test_what_counts_by_itself_or_is_recorded_begins_at_once() -> None:
    """Nothing is saved by leaving out what costs nothing."""
    quorum = Quorum(1, 3)
    plain = [item(at, at, None) for at in range(3)]
    recorded = [item(3 + at, at, quorum, recorded=Recorded("Hi")) for at in range(2)]
    missing = item(5, 2, quorum)
    claim = agenda([*plain, *recorded, missing], {})
    assert claim.due() == [*plain, *recorded]
    claim.ended(recorded[0], PASSED)
    claim.ended(recorded[1], FAILED)
    assert [each for each, _ in claim.settled()] == [missing]


def test_all_repeats_asks_all() -> None:
    """Everything begins at once, and nothing is left out."""
    items = [item(at, at, Quorum(1, 3)) for at in range(3)]
    claim = agenda(items, {}, asks_all=True)
    assert claim.due() == items
    assert [claim.ended(each, PASSED) for each in items] == [None] * 3
    assert not claim.settled()


def test_the_first_failed_case_ends_a_run_that_fails_fast() -> None:
    """A failed answer does not, as long as its case may pass."""
    items = [item(at, at, Quorum(2, 3)) for at in range(3)]
    claim = agenda(items, {}, fail_fast=True)
    assert claim.due() == items[:2]
    assert [claim.ended(each, FAILED) for each in items[:2]] == [None, RunState.INCOMPLETE]


def test_an_item_that_waits_or_is_released_makes_room_for_another() -> None:
    """Its answer is still to come: it counts as neither."""
    items = [item(at, at, Quorum(1, 3)) for at in range(3)]
    claim = agenda(items, {})
    assert claim.due() == items[:1]
    claim.ended(items[0], None)
    assert claim.due() == items[1:2]
