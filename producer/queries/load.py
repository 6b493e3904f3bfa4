"""Loads the queries of a file of baselines: which are asked, how often, and how they are cut into chunks."""

from collections.abc import Sequence
from difflib import get_close_matches
from urllib.parse import urlsplit

import msgspec

from producer.load.baselines import Baselines, encode_baseline, read_baselines
from producer.load.chunks import TYPICAL_QUERY, RunInput, dictionary_of, item_chunks, shape_of
from producer.load.source import Source
from producer.options import QueryChoice, SubmitOptions, pick_items
from producer.text import shown
from shared.contracts.queries import Baseline
from shared.contracts.query_run import SNAPSHOT_KEY, QueryRun
from shared.contracts.query_vocabulary import run_id_at
from shared.errors import InputError, UsageError, WrongInput
from shared.ledger.bounds import FIRST_LAYOUT, OPTIONS_LAYOUT, PACKED_LAYOUT, TARGETS_LAYOUT
from shared.redaction import Redactor
from shared.templates.rendered_requests import query_values, rendered_request
from shared.upstream.http_mapping import HttpMapping, HttpRequest


def load_queries(source: Source, options: SubmitOptions) -> RunInput:
    """Loads the baselines of an evaluation; all are read at once, to be sorted, if they were not read before.

    Raises:
        InputError: the source breaks its contract, or no query has the id to start from.
    """
    found = options.baselines
    baselines = found if isinstance(found, Baselines) else read_baselines(source)
    for warning in baselines.warnings:
        options.on_warning(warning)
    query_run = asked_by(baselines.api, options.queries)
    following = start_at(baselines.queries, query_run.start_from or None)
    queries = redacted(choose(following, options.query_choice), options.redactor)
    _check_requests(source.name, query_run, queries)
    total = len(queries) * query_run.repeat
    items = (
        (f"{query.id} #{again + 1}" if again else query.id, encode_baseline(query))
        for query in queries
        for again in range(query_run.repeat)
    )
    size, open_chunks = shape_of(total, query_run.concurrency)
    dictionary = dictionary_of(map(encode_baseline, queries), total, TYPICAL_QUERY)
    run = msgspec.structs.replace(
        query_run,
        version=baselines.version,
        start_from=queries[0].id,
        chosen=_describe_choice(options.query_choice, len(queries), len(baselines.queries)),
        offset=len(baselines.queries) - len(following),
        together=min(query_run.concurrency, size),
    )
    stored = msgspec.to_builtins(run)
    return RunInput(
        item_chunks(items, size),
        {SNAPSHOT_KEY: stored},
        [f"{key}={value}" for key, value in stored.items() if key != "version"],
        max_open_chunks=open_chunks,
        files=dictionary,
        layout=PACKED_LAYOUT if dictionary else _layout(run),
        run_id=lambda now_ms, copy: run_id_at(now_ms, copy=copy),
    )


def _layout(run: QueryRun) -> int:
    """Returns the layout that workers must know for the settings of a run."""
    if run.http is not None:
        return TARGETS_LAYOUT
    return OPTIONS_LAYOUT if run.fold_apostrophes else FIRST_LAYOUT


def asked_by(api: HttpMapping | None, run: QueryRun) -> QueryRun:
    """Returns the settings of a run whose file says how the API is asked; `--api-url` is another host for it.

    Raises:
        UsageError: an option says it too.

    >>> api = HttpMapping(HttpRequest("http://h:1/chat"), {"text": "/answer"})
    >>> asked_by(api, QueryRun()).api_url, asked_by(api, QueryRun("http://other")).http.request.url
    ('http://h:1', 'http://other/chat')
    """
    if api is None:
        return run
    usual = QueryRun()
    for option, given, default in (
        ("--method", run.method, usual.method),
        ("--path", run.path, usual.path),
        ("--field", (run.query_at, run.places), (usual.query_at, usual.places)),
    ):
        if given != default:
            raise UsageError(f"{option}: the file says in `api` how it is asked", hint="change it there")
    if run.api_url != usual.api_url:
        api = msgspec.structs.replace(
            api,
            request=_at_host(api.request, run.api_url),
            session=api.session
            and msgspec.structs.replace(api.session, request=_at_host(api.session.request, run.api_url)),
        )
    parts = urlsplit(api.request.address)
    return msgspec.structs.replace(
        run, http=api, api_url=f"{parts.scheme}://{parts.netloc}", method=api.request.method, path=parts.path
    )


def _at_host(request: HttpRequest, api_url: str) -> HttpRequest:
    """Returns a request to another host."""
    _, _, below = request.url.partition("://")[2].partition("/")
    return msgspec.structs.replace(request, url=f"{api_url.rstrip('/')}/{below}")


def _check_requests(name: str, run: QueryRun, queries: Sequence[Baseline]) -> None:
    """Renders the requests of a run whose file says how its API is asked.

    Raises:
        InputError: a template names a value that is not there, or cannot be rendered.
    """
    if run.http is None:
        return
    session = run.http.session
    brought = dict.fromkeys(session.take, "-") if session else {}
    for query in queries:
        values = query_values(query.query, query.model_dump(), brought)
        try:
            rendered_request(run.http.request, values)
        except WrongInput as problem:
            what = f"{name}: api, query {query.id}: {problem.what}"
            raise InputError(what, hint="vars.NAME is the key NAME of a query") from None


def redacted(queries: list[Baseline], redactor: Redactor | None) -> list[Baseline]:
    """Returns queries without what the rules of an installation find; they were validated before."""
    if redactor is None:
        return queries
    return [Baseline.model_construct(**redactor.value(query.model_dump())) for query in queries]


def _describe_choice(choice: QueryChoice, chosen: int, of: int) -> str:
    """Describes the selection of queries; empty for all.

    >>> _describe_choice(QueryChoice(first=3), 3, 50), _describe_choice(QueryChoice(), 50, 50)
    ('3 of 50 queries, chosen with --first 3', '')
    """
    return f"{chosen} of {of} queries, chosen with {choice}" if str(choice) else ""


def start_at(queries: Sequence[Baseline], identifier: str | None) -> list[Baseline]:
    """Returns the queries from the one with this id on; all of them when no id is given.

    Raises:
        InputError: no query has this id.
    """
    if identifier is None:
        return list(queries)
    ids = [query.id for query in queries]
    if identifier in ids:
        return list(queries[ids.index(identifier) :])
    close = get_close_matches(identifier, ids, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the ids go from {ids[0]} to {ids[-1]}" if ids else ""
    raise InputError(f"--start-from: no query has the id {shown(identifier)}", hint=hint)


def choose(queries: Sequence[Baseline], choice: QueryChoice) -> list[Baseline]:
    """Returns the queries selected on the command line.

    Raises:
        InputError: no query has such a category, or none is left.
    """
    categories = list(dict.fromkeys(query.category for query in queries))
    for name in choice.categories:
        if name not in categories:
            close = get_close_matches(name, categories, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"its categories: {', '.join(categories)}"
            raise InputError(f"--category: no query has the category {shown(name)}", hint=hint)
    found = [query for query in queries if not choice.categories or query.category in choice.categories]
    found = [query for query in found if choice.ids is None or query.id in choice.ids]
    left = pick_items(found, choice, lambda query: f"{query.id}\n{query.query}")
    if not left:
        raise InputError("no query is left to ask", hint=f"{choice} leaves none")
    return left
