"""Ranks the models of a run for `rank` and `run --rank`: works the comparisons, and prints the table."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from producer.cases.load import PlannedRun
from producer.cases.ranking import Ranking
from producer.cases.ranking_run import (
    FEWEST,
    HINT,
    By,
    comparison_of,
    is_ranking,
    ranking_of,
    write_comparisons,
)
from producer.cli.options.shared_options import InputOptions, SubmitChoice
from producer.cli.presenters import Unshown
from producer.cli.run_lookup import find_run
from producer.cli.session import Session
from producer.cli.submission import Submission, unread
from producer.cli.work import WorkOptions, submit_and_follow
from producer.document import EXIT_DONE, EXIT_NOT_GOOD
from producer.documents import Rate
from producer.text import percent, plural
from shared.errors import RunStateError, UsageError
from shared.kinds import CASES

COLUMNS: Final = ("#", "name", "wins", "losses", "ties", "preferred to average", "95% interval")


def rank(
    session: Session,
    run: str,
    options: WorkOptions,
    *,
    model: str | None = None,
    criterion: str | None = None,
    by: By | None = None,
) -> int:
    """Submits the comparisons of a run's answers, works them to their end, and prints the ranking.

    Args:
        session: access to Redis.
        run: the run's id; of a ranking: it is printed again.
        options: how to work.
        model: the judge; None: the bench's.
        criterion: what is better; None: the bench's.
        by: what is ranked; None: models.

    Raises:
        UnknownRunError: there is no such run.
        RunStateError: it has not ended.
        UsageError: it has nothing to compare, or no criterion.
    """
    info = find_run(session, run)
    run = info.run
    if not info.is_final:
        raise RunStateError(
            f"{run} is {info.state}: not all of its answers are there",
            hint=f"`proctor watch {run}`, then `proctor rank {run}`",
        )
    if info.kind == CASES and is_ranking(session.access.store, info):
        given = [
            name for name, value in (("--model", model), ("--criterion", criterion), ("--by", by)) if value
        ]
        if given:
            hint = f"`proctor rank RUN {given[0]} …` with the run that it ranks; `proctor runs list` has it"
            raise UsageError(f"{run} is a ranking, to which {given[0]} does not apply", hint=hint)
        return _print(session, run, run, EXIT_DONE)
    comparison = comparison_of(info, model, criterion, by or "model")
    earlier = set(session.seen)
    with TemporaryDirectory(prefix="proctor-rank-") as folder:
        bench = write_comparisons(session.access.store, info, Path(folder), comparison)
        name = f"{info.name}: ranking" if info.name else ""
        choice = SubmitChoice(InputOptions(kind=CASES.name, name=name))
        asked = unread(session, str(bench), choice, origin=f"answers of {run}")
        unshown = replace(options, presenter=Unshown(options.presenter))
        code = submit_and_follow(session, Submission(session, asked), unshown)
    [ranking] = session.seen - earlier
    return _print(session, run, ranking, code)


def run_and_rank(session: Session, submission: Submission, options: WorkOptions) -> int:
    """Works a run of cases to its end, ranks its models, and returns the exit code of the run.

    Args:
        session: access to Redis.
        submission: the file.
        options: how to work.

    Raises:
        UsageError: nothing in the file says how answers are compared.
        ProctorError: see `Submission.send`.
    """
    plan = submission.plan
    found = plan.options.plan if plan else None
    is_comparable = isinstance(found, PlannedRun) and found.run.pairwise and len(found.run.models) >= FEWEST
    if plan and not is_comparable:
        raise UsageError(f"{plan.source.name} has no two models and `pairwise`", hint=HINT)
    del plan, found  # no memory for them while the run goes on
    earlier = set(session.seen)
    code = submit_and_follow(session, submission, options)
    [run] = session.seen - earlier
    if code not in {EXIT_DONE, EXIT_NOT_GOOD}:
        return code
    return rank(session, run, replace(options, files=[], gates=())) or code


def _print(session: Session, run: str, ranking: str, code: int) -> int:
    """Prints a ranking; some verdicts may be missing, but without any there is nothing to print."""
    by, found = ranking_of(session.access.store, ranking)
    end = EXIT_DONE if code == EXIT_NOT_GOOD else code
    if not found.table:
        end = end or EXIT_NOT_GOOD
    if session.options.json:
        session.output.document(found.as_document(ranking, run, code=end))
    elif found.table:
        _print_table(session, ranking, found, by)
    if found.unclear and not session.options.json:
        what = f"{plural(found.unclear, 'verdict')} missing or unreadable"
        outcome = "their pairs do not count" if found.table else "no pair has a verdict in both orders"
        session.output.message(f"{what}; {outcome} (`proctor results {ranking}` shows the replies)")
    if end not in {EXIT_DONE, EXIT_NOT_GOOD}:
        session.output.note(f"`proctor resume {ranking}`, then `proctor rank {ranking}` completes it")
    return end


def _print_table(session: Session, ranking: str, found: Ranking, by: By) -> None:
    """Prints a ranking for people."""
    output = session.output
    equal = f"; {found.equal:,} with equal answers, which tie" if found.equal else ""
    output.data(f"{plural(found.pairs, 'pair')} of answers, each judged in both orders{equal} ({ranking})")
    rows = [
        (
            str(place),
            each.name,
            str(each.wins),
            str(each.losses),
            str(each.ties),
            percent(each.strength.value),
            f"{percent(each.strength.low)} to {percent(each.strength.high)}",
        )
        for place, each in enumerate(found.table, 1)
    ]
    columns = [by if name == "name" else name for name in COLUMNS]
    output.table(columns, rows, right=("#", "wins", "losses", "ties", "preferred to average"), middle=(by,))
    output.data(f"position: the answer shown first was preferred in {_rate(found.prefers_first)}")
    output.data(f"both orders gave the same verdict in {_rate(found.agrees)}; the others count as ties")
    if found.is_smoothed:
        output.note(f"half a win was added to each side of each pair: a {by} has no win, or no loss")


def _rate(rate: Rate) -> str:
    """A share with its interval."""
    if not rate.n:
        return "0 of 0"
    within = f"95% interval {percent(rate.low)} to {percent(rate.high)}"
    return f"{round(rate.value * rate.n)} of {rate.n} ({percent(rate.value)}, {within})"
