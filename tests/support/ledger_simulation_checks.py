"""States what must hold in the ledger after every single script, and at the end of a life under faults."""

from collections import Counter

from shared.ledger.wire import count_marks
from shared.names import FINAL_STATES
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_model_state import Ref, Run


def check(model: LedgerModel) -> None:
    """Asserts every invariant of the ledger."""
    _check_places(model)
    for run in model.state.runs.values():
        _check_run(model, run)
    _check_inboxes(model)
    _check_locks(model)
    _check_results(model)
    _check_streams(model)


def _check_places(model: LedgerModel) -> None:
    """Each open chunk of a sealed run is in exactly one place, and nothing else is anywhere."""
    places: Counter[tuple[str, str]] = Counter()
    for run in model.state.runs.values():
        places.update((run.run, chunk) for chunk in run.waiting)
    for kind in model.state.kinds.values():
        places.update([*kind.live, *kind.parked])
    planned = {(run.run, chunk) for run in model.state.runs.values() for chunk in run.plan}
    assert places.keys() == planned, f"in a place or planned, not both: {places.keys() ^ planned}"
    assert all(count == 1 for count in places.values()), f"in several places: {places}"


def _check_run(model: LedgerModel, run: Run) -> None:
    """A run is final exactly when it has no open chunk, finished when all its items have results."""
    ring = model.kind_of(run).ring
    if run.state in FINAL_STATES:
        assert not run.plan, f"{run.run} is {run.state} and has open chunks"
        assert run.run not in ring, f"{run.run} is {run.state} and would be published"
        assert not run.redo, f"{run.run} is {run.state} and asks for {run.redo}"
    elif run.state != "loading":
        assert run.plan, f"{run.run} has nothing to do but is {run.state}"
    if run.state == "finished":
        assert run.done == run.goal, f"{run.run} is finished with {run.done} of {run.goal}"
        if run.kind != "turns":
            assert run.results.keys() == run.items.keys(), f"{run.run} is finished without all results"
    if run.sealed_ms:
        left = _left_of_turns(model, run) if run.kind == "turns" else _left_of_items(run)
        assert run.goal - run.done == left, f"{run.run} counts {run.goal - run.done} where {left} are left"
    if run.state == "running" and run.next_chunk():
        assert run.run in ring, f"{run.run} is in no ring"
    live = model.kind_of(run).live
    for chunk, record in run.chunks.items():
        assert (record.state == "L") == (record.token is not None), f"{run.run} {chunk}: {record}"
        assert (record.state in "PL") == ((run.run, chunk) in live), f"{run.run} {chunk}: {record}"


def _left_of_items(run: Run) -> int:
    """How many items still need a result: those without one, and those asked for again."""
    missing = run.items.keys() - run.results.keys()
    return len(missing) + sum(index in run.results for index in run.redo)


def _left_of_turns(model: LedgerModel, run: Run) -> int:
    """How many turns still need a result: those without one, and those that open chunks decide again."""
    left = run.total - len(model.decided.get(run.run, ()))
    for chunk in run.plan:
        for part in model.undone(run, chunk):
            thread = model.namespace_of(run).thread(part.thread)
            is_front = thread.inbox[:1] == [Ref(run.run, part.batch, part.turns)]
            left += count_marks(part.again[thread.offset if is_front else 0 :])
    return left


def _check_inboxes(model: LedgerModel) -> None:
    """What stands in the inboxes is what admitted chunks still have to decide, each batch once."""
    refs = Counter(
        (ref.run, ref.batch)
        for namespace in model.state.namespaces.values()
        for thread in namespace.threads.values()
        for ref in thread.inbox
    )
    assert all(count == 1 for count in refs.values()), f"twice in an inbox: {refs}"
    wanted = {
        (run.run, part.batch)
        for run in model.state.runs.values()
        if run.kind == "turns"
        for chunk in run.chunks
        for part in model.undone(run, chunk)
    }
    assert refs.keys() == wanted, f"inboxes and open chunks differ: {refs.keys() ^ wanted}"


def _check_locks(model: LedgerModel) -> None:
    """A lock or a mark belongs to a live lease; a thread's state is the log of what was decided in it."""
    for name, namespace in model.state.namespaces.items():
        for key, thread in namespace.threads.items():
            if thread.owner is not None:
                record = model.record(thread.owner.run, thread.owner.chunk)
                assert record, f"{key} is held by a chunk that ended"
                assert record.token == thread.owner.token, f"{key} outlives its lease"
            log = model.log.get((name, key), [])[model.gone.get((name, key), 0) :]
            expected = "".join(f"{run}/{index}," for run, index, poisoned in log if not poisoned).encode()
            assert (thread.memento or b"") == expected, f"the state of {key} is not its log"
    for worker, lease in model.state.suspects.items():
        record = model.record(lease.run, lease.chunk)
        assert record, f"{worker} is marked for a chunk that ended"
        assert record.token == lease.token, f"{worker} is marked for a lease that ended"


def _check_results(model: LedgerModel) -> None:
    """No result is lost or changed but by a higher generation; the dead set holds the items in error."""
    for (run, name, generation), value in model.written.items():
        kept = model.state.runs[run].results[name]
        assert kept[0] > generation or kept == (generation, value), f"result lost: {run} {name} {generation}"
    for run, index in model.state.dead:
        assert run in model.state.runs, f"{run} {index} is in the dead set without its run"
    for found in model.state.runs.values():
        if found.kind != "turns":
            failed = {
                index
                for index, (_, value) in found.results.items()
                if value.startswith(b"x|") or value == b"poison"
            }
            dead = {index for run, index in model.state.dead if run == found.run}
            assert dead == failed, f"{found.run}: dead set {dead}, errors {failed}"


def _check_streams(model: LedgerModel) -> None:
    """Each run is folded once and is gone then; a stream counts the results that were folded, none twice."""
    folded = Counter(id(run) for run, _ in model.folded)
    assert all(count == 1 for count in folded.values()), f"folded twice: {folded}"
    assert not folded.keys() & {id(run) for run in model.state.runs.values()}, "folded and still there"
    turns, results = Counter[str](), Counter[str]()
    for run, count in model.folded:
        turns[run.namespace] += run.total
        results[run.namespace] += count
    for name, served in model.state.served.items():
        counted = sum(words.total() for words in served.hours.values()) / 2
        kept = sum(len(entry.fields["a"].split()) for entry in served.entries)
        assert counted == results[name], f"{name}: {counted} counted of {results[name]}"
        assert kept <= turns[name], f"{name}: {kept} of {turns[name]}"


def check_rest(model: LedgerModel) -> None:
    """At the end nothing is left over: no chunk, lock, mark, inbox entry or open namespace."""
    for name, kind in model.state.kinds.items():
        assert not kind.live, f"{name}: live {kind.live}"
        assert not kind.parked, f"{name}: parked {kind.parked}"
        assert not kind.ring, f"{name}: ring {kind.ring}"
    assert not model.state.suspects, f"suspects {model.state.suspects}"
    assert not any(run.chunks for run in model.state.runs.values()), "records of chunks"
    for name, namespace in model.state.namespaces.items():
        assert not namespace.users, f"{name}: users {namespace.users}"
        assert not any(thread.owner for thread in namespace.threads.values()), f"{name}: locks"
        assert not any(thread.inbox for thread in namespace.threads.values()), f"{name}: inboxes"
