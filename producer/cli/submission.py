"""Submits a file for `run` and `submit`, with its progress shown."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from producer import kinds
from producer.cli.options.choices import read_case_choice, read_live_run, read_query_choice, read_query_run
from producer.cli.options.shared_options import SubmitChoice
from producer.cli.preflight import announce
from producer.cli.service_documents import SubmitDocument
from producer.cli.session import Session
from producer.load.detect import detect_kind
from producer.load.source import Source
from producer.options import SubmitOptions, SubmittedRun
from producer.text import count, plural
from shared.contracts.turn_vocabulary import SummaryPolicy
from shared.errors import UsageError
from shared.kinds import CASES, QUERIES, TURNS, Kind, kind_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from producer.aggregate.gates import Gate
    from producer.cli.live.progress import View

MOST_NAME_CHARS: Final = 120
"""Of a run's name."""


class Submission:
    """One file on its way into the queue.

    Args:
        session: access to Redis.
        file: path, or `-` for stdin.
        choice: options of the command line.
        origin: what runs are listed as the input, where the file is one of our own making.
    """

    def __init__(self, session: Session, file: str, choice: SubmitChoice, *, origin: str = "") -> None:
        self._origin = origin
        self._session = session
        self._choice = choice
        self.source = Source(file)
        self._options: SubmitOptions | None = None
        self.items: int | None = None
        """How many items the run has, where `announce` has found that out."""

    def kind(self) -> Kind:
        """Returns the kind of the file.

        Raises:
            InputError: it cannot be read, or its kind is not recognised.
        """
        named = self._choice.input.kind
        return kind_named(named) if named else detect_kind(self.source)

    def options(self) -> SubmitOptions:
        """Returns the settings of the submit.

        Raises:
            UsageError: an option cannot be used, or is not for this kind of file.
            ConfigError: a variable of the environment cannot be used.
        """
        if self._options is None:
            self._options = self._read_options()
        return self._options

    def _read_options(self) -> SubmitOptions:
        session, choice, settings, kind = self._session, self._choice, self._session.settings, self.kind()
        choice.refuse_other_kinds(kind)
        common = SubmitOptions(
            idempotency_key=choice.input.idempotency_key,
            name=read_name(choice.input.name),
            origin=self._origin,
            namespace=choice.input.namespace,
            summary_policy=SummaryPolicy(choice.input.summary_policy),
            signals_once=choice.input.signals_once,
            results_ttl_s=settings.results_ttl_s,
            max_backlog_items=settings.max_backlog_items,
            patience_s=settings.patience_s,
            on_warning=session.output.warn,
        )
        add = _OWN_OPTIONS.get(kind)
        options = add(common, choice) if add else common
        return self._limited(options, kind) if choice.selection.last_failed else options

    def _limited(self, options: SubmitOptions, kind: Kind) -> SubmitOptions:
        """Limits a run to what failed in the newest run of the file; to nothing where nothing did."""
        from producer.last_failed import earlier_run  # noqa: PLC0415 - start-up: only this option needs it

        limit, output = kinds.of(kind).limit(), self._session.output
        if limit is None:
            raise UsageError(f"--last-failed is not for {kind}", hint="leave it out")
        if self.source.path is None:
            raise UsageError("--last-failed needs a file", hint="a stream has no earlier run")
        earlier = earlier_run(self._session.store, kind, self.source)
        if earlier is None:
            output.note(f"--last-failed: there is no earlier run of {self.source.name}; all of it is run")
            return options
        run, total = earlier.info.run, plural(earlier.info.total, kind.noun)
        if not earlier.failed:
            output.note(f"--last-failed: none of the {total} of {run} failed; all of the file is run")
            return options
        output.note(f"--last-failed: {count(len(earlier.failed))} of the {total} of {run}")
        return limit(options, earlier.failed)

    def announce(
        self, gates: "Sequence[Gate]" = (), *, starts_workers: Callable[[], bool] = lambda: False
    ) -> None:
        """Prints what is going to be sent and what will probably fail; asks where that is much.

        Args:
            gates: conditions that fail the run.
            starts_workers: whether this command starts the workers, which then lack what it lacks.

        Raises:
            InputError: the file breaks its contract.
            UsageError: the answer was no, a key is missing, or a gate names what the run does not have.
        """
        found = kinds.of(self.kind()).forecast(self.source, self.options())
        if found is not None:
            self.items = found.items
            if gates and found.plan is not None:
                from producer.aggregate.gates import check_gate_names  # noqa: PLC0415 - start-up: only gates need it

                check_gate_names(gates, found.plan.names)
            if found.missing is not None and starts_workers():
                raise found.missing.as_error()
            self._options = replace(self.options(), plan=found.plan, baselines=found.baselines)
            announce(self._session, self.source.name, found)

    def send(self, view: "View", *, is_attended: bool = False) -> SubmittedRun:
        """Submits the whole file, or nothing of it.

        Args:
            view: shows the progress of loading.
            is_attended: the caller follows the run and would notice a crash of Redis before the run is on
                disk, in which case the file can be submitted again. Otherwise the submit waits for the disk.

        Raises:
            InputError: the file breaks its contract.
            ProctorError: see `producer.submit.submit`.
        """
        from producer.submit import submit  # noqa: PLC0415 - start-up: checking a file must not load redis

        session = self._session
        if session.connection.risk:
            session.output.warn(f"{session.connection.risk}; `proctor doctor` shows how to fix it")
        options = replace(
            self.options(),
            await_disk=not (is_attended and self.source.repeatable),
            on_progress=lambda items: view.loading(self.source.name, items),
            on_wait=view.note,
            on_warning=(lambda warning: view.note(f"warning: {warning}"))
            if session.output.live
            else session.output.warn,
        )
        session.require_broker()
        submitted = submit(session.ledger, session.publisher, self.source, kind=self.kind(), options=options)
        self._options = replace(options, plan=None, baselines=None)  # no memory for it while the run goes on
        if submitted.duplicate:
            view.note(f"this key was submitted before: {submitted.run}")
        return submitted


def read_name(text: str) -> str:
    """Reads the name of a run.

    Raises:
        UsageError: it is too long, or more than a line.

    >>> read_name("  shorter prompt ")
    'shorter prompt'
    """
    name = text.strip()
    if len(name) > MOST_NAME_CHARS or not name.isprintable():
        raise UsageError(
            f"--name has {len(name):,} characters, or some that cannot be printed",
            hint=f"write one line of at most {MOST_NAME_CHARS} characters",
        )
    return name


def add_turn_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of turns; see `read_live_run`."""
    return replace(common, live=read_live_run(choice.models, in_flight=choice.in_flight))


def add_case_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of cases; see `read_case_choice`."""
    cases = read_case_choice(choice.cases, choice.selection, choice.models, in_flight=choice.in_flight)
    return replace(common, cases=cases)


def add_query_options(common: SubmitOptions, choice: SubmitChoice) -> SubmitOptions:
    """Adds the settings of a run of queries; see `read_query_run`."""
    if choice.queries is None:
        return common
    return replace(
        common,
        queries=read_query_run(choice.queries, choice.selection, in_flight=choice.in_flight),
        query_choice=read_query_choice(choice.queries, choice.selection),
    )


_OWN_OPTIONS: Final[Mapping[Kind, Callable[[SubmitOptions, SubmitChoice], SubmitOptions]]] = {
    TURNS: add_turn_options,
    CASES: add_case_options,
    QUERIES: add_query_options,
}
"""What adds the options that a kind has in `SubmitChoice`."""


def lacking_workers(session: Session, submitted: SubmittedRun) -> str:
    """Returns why a run waits for workers; empty if some can work on it."""
    from shared.runs.waiting import outdated_text  # noqa: PLC0415 - start-up: see `Submission.send`

    kind = submitted.kind
    if session.count_workers(kind, submitted.layout):
        return ""
    if outdated := session.count_workers(kind):
        return f"{outdated_text(outdated)} cannot work on this run; it waits for one of this version"
    return f"no worker for {kind} is alive: the run waits until one is started (`proctor worker -Q {kind}`)"


def print_run_id(session: Session, submitted: SubmittedRun) -> None:
    """Prints the id of a submitted run: alone on its line, or as a document."""
    if not session.options.json:
        session.output.data(submitted.run)
        return
    document = SubmitDocument(
        run_id=submitted.run,
        kind=submitted.kind.name,
        total=submitted.total,
        threads=submitted.threads,
        duplicate=submitted.duplicate,
    )
    session.output.document(document)
