"""`proctor cache info|clear`: answers of models that are kept for identical requests."""

import click

from producer.cli.options.global_options import group
from producer.cli.session import Session, pass_session
from producer.text import count, duration, percent, plural, size
from shared.settings import DAY_S


@group()
def command() -> None:
    """Inspect or clear cached answers of models.

    An identical request (model, messages, parameters, endpoint, repetition) is answered by a model once;
    later ones get that answer with its original latency, tokens and cost. Errors are never kept. `run` and
    `submit` take --no-cache, and PROCTOR_CACHE_TTL_S sets how long answers are kept.
    """


@command.command()
@pass_session
def info(session: Session) -> None:
    """Show the number and size of cached answers, and the hit rate."""
    from producer.service_documents import CacheContents, CacheDocument  # noqa: PLC0415 - start-up: as below
    from shared.upstream.cached_answers import AnswerBook  # noqa: PLC0415 - start-up: `--help` loads no more than it shows

    found, ttl_s = AnswerBook(session.access.ledger.caller).info(), session.settings.cache_ttl_s
    rate = found.hit_rate
    if session.options.json:
        contents = CacheContents(found.answers, found.bytes, found.hits, found.misses, rate, ttl_s)
        session.output.document(CacheDocument(cache=contents))
        return
    kept = plural(ttl_s // DAY_S, "day") if ttl_s >= DAY_S else duration(ttl_s)
    used = "never asked" if rate is None else f"{count(found.hits)} of {count(found.hits + found.misses)}"
    share = "" if rate is None else f" ({percent(rate, 0)})"
    session.output.data(
        f"answers   {count(found.answers)}, {size(found.bytes)}\nhits      {used}{share}\nkept for  {kept}"
    )


@command.command()
@click.option("-f", "--force", is_flag=True, help="Do not ask for confirmation, like --yes.")
@pass_session
def clear(session: Session, *, force: bool) -> None:
    """Clear the cache: models are called again."""
    from producer.service_documents import CacheCleared  # noqa: PLC0415 - start-up: as below
    from shared.upstream.cached_answers import AnswerBook  # noqa: PLC0415 - start-up: `--help` loads no more than it shows

    book = AnswerBook(session.access.ledger.caller)
    answers = book.info().answers
    if answers and not force:
        session.confirm(f"forget {plural(answers, 'answer')} of models?")
    gone = book.clear()
    if session.options.json:
        session.output.document(CacheCleared(cleared=gone))
    else:
        session.output.data(f"{plural(gone, 'answer')} forgotten")
