"""`proctor threads list|show|rm`: the stored state of conversation threads."""

from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from producer.cli.options.global_options import group
from producer.cli.output import printable
from producer.cli.session import Session, pass_session
from producer.text import count, duration, plural
from shared.errors import UnknownRunError, UsageError
from shared.settings import DAY_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from producer.cli.output import Style
    from producer.cli.thread_view import FoundTurn, ThreadView
    from shared.runs.threads import ThreadStore

ROLE_CELLS: Final = 9
"""Of `assistant`."""
_STYLES: Final[dict[str, "Sequence[Style]"]] = {"must": ("bold",), "should": (), "skip": ("dim",)}
"""Of decisions, by weight; whatever else is an error."""
SUGGESTED: Final = 3
"""Similar names in a hint for an unknown one."""


@group()
def command() -> None:
    """List, show or remove the stored state of conversation threads.

    A thread belongs to a namespace: that of its run, named after the run, or the one given with
    --namespace, which runs share.
    """


@command.command("list")
@click.argument("namespace", required=False)
@click.option(
    "--first", "limit", type=click.IntRange(1), default=50, show_default=True, help="Threads to list."
)
@pass_session
def list_threads(session: Session, *, namespace: str | None, limit: int) -> None:
    """List threads of NAMESPACE, else of all namespaces, those with the latest turns first."""
    from producer.cli.thread_view import newest  # noqa: PLC0415 - same
    from producer.service_documents import ThreadsDocument  # noqa: PLC0415 - start-up: `--help` must not load redis

    store = _store(session)
    spaces = store.namespaces() if namespace is None else [_checked(session, store, namespace)]
    total, views = sum(map(store.count, spaces)), newest(store, spaces, limit)
    if session.options.json:
        session.output.document(ThreadsDocument(threads=tuple(view.listed() for view in views), total=total))
        return
    if not views:
        session.output.note("no threads here yet; `proctor run TURNS.jsonl` makes some")
        return
    session.output.table(
        ("NAMESPACE", "THREAD", "TURNS", "LAST TURN", "AGE", "AFFECT", "SUMMARY"),
        [
            (
                view.namespace,
                view.name,
                count(view.turns),
                view.memento.updated_at,
                _age(view),
                _affect(view),
                "frozen" if view.is_frozen else "open",
            )
            for view in views
        ],
        right=("TURNS", "AGE"),
    )
    if total > len(views):
        session.output.note(f"and {plural(total - len(views), 'thread')} more: --first {count(total)}")


@command.command()
@click.argument("namespace")
@click.argument("thread")
@click.option("--turns", type=click.IntRange(0), default=10, show_default=True, help="Last turns to show.")
@pass_session
def show(session: Session, *, namespace: str, thread: str, turns: int) -> None:
    """Show THREAD of NAMESPACE: its last turns with their decisions, its memento, and whether it is frozen.

    With --json the memento is complete, and a turn may carry it as context.thread_memento.
    """
    from producer.cli.thread_view import document_of, last_turns, view_of  # noqa: PLC0415 - start-up: `--help` must not load redis

    store = _store(session)
    namespace = _checked(session, store, namespace)
    state = store.state(namespace, thread)
    if not state:
        raise UsageError(
            f"namespace {namespace} has no thread {thread!r}", hint=f"`proctor threads list {namespace}`"
        )
    view, users = view_of(namespace, thread, state), store.users(namespace)
    last = last_turns(session.access.store, view, turns) if turns else []
    if session.options.json:
        session.output.document(document_of(view, last, users))
        return
    _print_head(session, view)
    if last:
        _print_turns(session, last)
    elif turns:
        session.output.note("no run that decided its turns is kept any more")
    _print_memento(session, view)
    if users:
        session.output.note(f"in use by {', '.join(users)}")


@command.command("rm")
@click.argument("namespace")
@click.argument("threads", nargs=-1, metavar="[THREAD...]")
@pass_session
def remove(session: Session, *, namespace: str, threads: tuple[str, ...]) -> None:
    """Remove THREADs of NAMESPACE, or all of it, permanently; results of runs are kept.

    Their next turns begin with an empty memento, and requests that they answered may come again. Refused
    while a run uses the namespace.
    """
    store = _store(session)
    namespace = _checked(session, store, namespace)
    total = store.count(namespace)
    states = {name: store.state(namespace, name) for name in threads}
    unknown = [name for name, state in states.items() if not state]
    if unknown:
        raise UsageError(
            f"namespace {namespace} has no thread {unknown[0]!r}", hint=f"`proctor threads list {namespace}`"
        )
    what = ", ".join(map(printable, threads)) or f"all {plural(total, 'thread')}"
    session.confirm(f"remove {what} of {namespace}?")
    requests = store.request_ids(namespace, states) if states else []
    gone = session.access.ledger.forget(namespace, states, requests)
    if session.options.json:
        from producer.service_documents import ThreadsRemoved  # noqa: PLC0415 - start-up: as above

        session.output.document(ThreadsRemoved(namespace=namespace, removed=gone))
    else:
        session.output.data(f"{plural(gone, 'thread')} of {namespace} removed")


def _store(session: Session) -> "ThreadStore":
    """Opens the store of threads."""
    from shared.runs.threads import ThreadStore  # noqa: PLC0415 - start-up: `--help` must not load redis

    return ThreadStore(session.access.client, patience_s=session.settings.patience_s)


def _checked(session: Session, store: "ThreadStore", namespace: str) -> str:
    """Returns the name of a namespace that holds threads; those of a run also by a short name of the run.

    Raises:
        UsageError: there is none of this name; the hint offers those that are near.
        AmbiguousRunError: several runs have ids that begin with it.
    """
    from producer.cli.run_lookup import find_run  # noqa: PLC0415 - start-up: `--help` must not load redis

    if store.count(namespace):
        return namespace
    with suppress(UnknownRunError):
        named = find_run(session, namespace).namespace
        if store.count(named):
            return named
    known = store.namespaces()
    near = get_close_matches(namespace, known, n=SUGGESTED) or known[:SUGGESTED]
    hint = (
        f"there is {', '.join(near)}; `proctor threads list` has all" if near else "there are no threads yet"
    )
    raise UsageError(f"no threads are kept in namespace {namespace!r}", hint=hint)


def _print_head(session: Session, view: "ThreadView") -> None:
    """Prints which thread it is, and how far it came."""
    output = session.output
    name = output.paint(printable(view.name), "bold")
    status = f"{plural(view.turns, 'turn')} decided · etag {view.turns} · last turn {view.memento.updated_at}"
    output.data(f"{name} of {view.namespace}\n{status} ({_age(view)} ago)")


def _print_turns(session: Session, turns: "Sequence[FoundTurn]") -> None:
    """Writes the last turns of a thread as a conversation, oldest first, with each decision below."""
    from producer.report.cells import Size, plain  # noqa: PLC0415 - start-up: `--help` must not load it

    output, digits = session.output, max(len(str(last.etag)) for last in turns)
    indent = digits + ROLE_CELLS + 4
    lines = [""]
    for last in turns:
        shown = last.shown()
        text = output.folded(plain(shown.text, Size.REASON) or shown.name, indent=indent)
        lines.append(f"{last.etag:>{digits}}  {shown.role:<{ROLE_CELLS}}  {text}")
        head = shown.decision
        painted = output.paint(printable(head), *_STYLES.get(head, ("yellow",)))
        if shown.is_frozen:
            head += "  ❄ frozen"
            painted += f"  {output.paint('❄ frozen', 'cyan')}"
        inner = indent + len(head) + 2
        why = output.folded(plain(shown.reason, Size.REASON), indent=inner)
        lines.append(f"{' ' * indent}{painted}  {output.paint(why, 'dim')}")
        became = output.folded(" · ".join([*shown.became, last.place]), indent=indent)
        lines.append(" " * indent + output.paint(became, "dim"))
    output.data("\n".join(lines))


def _print_memento(session: Session, view: "ThreadView") -> None:
    """Prints the memento as it is now, and last what the guardrail does with the next turn."""
    from worker.breakpoint.context import memento_lines  # noqa: PLC0415 - start-up: `--help` must not load it

    output = session.output
    lines = ["", output.paint("Memento", "bold")]
    lines += [f"  {output.folded(printable(line), indent=4)}" for line in memento_lines(view.memento)]
    if view.is_frozen:
        lines += ["", output.paint("frozen: only a must changes the summary", "cyan")]
    else:
        lines += ["", output.paint("open: the summary may change", "green")]
    output.data("\n".join(lines))


def _age(view: "ThreadView") -> str:
    """Writes how long ago a thread's last turn was."""
    age_s = view.age_s
    return plural(int(age_s // DAY_S), "day") if age_s >= DAY_S else duration(age_s)


def _affect(view: "ThreadView") -> str:
    """Formats phase and intensity of a thread."""
    rollup = view.memento.affect.rollup
    return f"{rollup.phase} ({rollup.intensity_bucket})"
