"""What `proctor labels` does with the labels of a run, and what it prints."""

from collections.abc import Sequence
from getpass import getuser
from pathlib import Path

from producer.atomic_file import atomic_file
from producer.cli.run_lookup import find_run
from producer.cli.session import Session
from producer.item_names import find_items
from producer.load.source import Source
from producer.review import label_files, label_store
from producer.review.answer_labels import AnswerLabel, Judgement, agreement_line, reviewed
from producer.service_documents import LabelsDocument, LabelsImported
from producer.text import plural
from shared.clock import now_ms


def list_labels(session: Session, run: str) -> None:
    """Prints the labels of a run, and how far its reviewers agree."""
    info, store = find_run(session, run), session.access.store
    found = label_store.read_labels(store, info.run)
    rows, review = label_files.rows_of(store, info, found), reviewed(found)
    if session.options.json:
        document = LabelsDocument(
            run_id=info.run,
            labels=rows,
            reviewers=list(review.reviewers),
            decided=len(review.verdicts),
            disputed=review.disputed,
            shared=review.shared,
            kappa=review.kappa,
        )
        session.output.document(document)
    elif found:
        session.output.table(
            ("ITEM", "LABEL", "REVIEWER", "TAGS", "NOTE"),
            [(row.name, row.verdict, row.reviewer, ";".join(row.tags), row.note) for row in rows],
        )
        session.output.note(agreement_line(review))
    else:
        session.output.note(f"{info.run} has no labels")


def add_label(
    session: Session, run: str, item: str, verdict: str, *, reviewer: str, note: str, tags: Sequence[str]
) -> None:
    """Labels the answer that an item has now."""
    info, store = find_run(session, run), session.access.store
    [position] = find_items(store, info, [item])
    label = AnswerLabel(
        position=position,
        reviewer=reviewer or getuser(),
        verdict=Judgement(verdict),
        note=note,
        tags=list(tags),
        answer=label_files.answers_of(store, info, {position}).get(position, ""),
        at_ms=now_ms(),
    )
    _write(session, info.run, [label])


def export_labels(session: Session, run: str, output: Path | None) -> None:
    """Writes the labels of a run to a file, or to stdout."""
    info, store = find_run(session, run), session.access.store
    rows = label_files.rows_of(store, info, label_store.read_labels(store, info.run))
    text = label_files.written(rows, str(output or "-"))
    if output is None:
        for line in text.decode().splitlines():
            session.output.data(line)
        return
    with atomic_file(output) as out:
        out.write(text)
    session.output.note(f"{plural(len(rows), 'label')} written to {output}")


def import_labels(session: Session, run: str, file: Path, reviewer: str) -> None:
    """Reads labels of a run from a file."""
    info, rows = find_run(session, run), label_files.read_rows(Source(file))
    found = label_files.imported(session.access.store, info, rows, reviewer=reviewer or getuser())
    _write(session, info.run, found.labels, found.of_other_answers)


def remove_labels(session: Session, run: str, items: Sequence[str], reviewer: str) -> None:
    """Takes labels of a reviewer back."""
    info = find_run(session, run)
    positions = find_items(session.access.store, info, items, is_each=True)
    gone = label_store.remove_labels(session.access.client, info.run, reviewer or getuser(), positions)
    session.output.data(f"{plural(gone, 'label')} removed")


def _write(session: Session, run: str, labels: Sequence[AnswerLabel], of_other_answers: int = 0) -> None:
    """Writes labels and prints how many, and how many were left out."""
    imported = label_store.write_labels(session.access.client, run, labels)
    if session.options.json:
        session.output.document(
            LabelsImported(run_id=run, imported=imported, of_other_answers=of_other_answers)
        )
        return
    session.output.data(f"{plural(imported, 'label')} of {run}")
    if of_other_answers:
        left_out = plural(of_other_answers, "label")
        session.output.note(f"{left_out} left out: the run has another answer than the one that was judged")
