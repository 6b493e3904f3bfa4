"""Completes files, run ids, case ids, models and schema names in a shell: quickly, and without any error.

Each press of Tab starts a process, so it imports only what its answer needs: names in a bench are read by the
YAML parser alone, and the ids of runs by the Redis client without the models of runs.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from io import StringIO
from itertools import islice
from pathlib import Path, PurePath
from typing import Any, Final

import click
from click.shell_completion import CompletionItem, shell_complete, split_arg_string

from producer.cli.options.global_options import GlobalOptions
from shared.server.redis_url import parse_redis_url
from shared.settings import Settings

PATIENCE_S: Final = 0.4
"""How long a server may take to answer."""
MOST_ITEMS: Final = 10_000
"""Items of a run whose ids are offered."""
NEWEST: Final = 200
"""Runs that are offered."""
FILE_BYTES: Final = 1 << 20
"""Of a longer file nothing is offered."""
BENCH_CONFIG: Final = "bench.config.yaml"
"""What `llm-bench` reads where no file is named."""
BENCH_SUFFIXES: Final = (".yaml", ".yml", ".json")
LEAST_CHARS: Final = 2
"""Letters of a model's name before any of the thousands with a known price are offered."""
MOST: Final = 100

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def completed(root: click.Command, program: str, variable: str, instruction: str) -> int:
    """Prints what a shell asks for; whatever goes wrong, the person is typing and sees nothing of it.

    Args:
        root: the program's command.
        program: its name.
        variable: that the shell's script sets.
        instruction: its value, such as `bash_complete`.
    """
    try:
        return shell_complete(root, {}, program, variable, instruction)
    except Exception:  # noqa: BLE001 - see above
        return 1


def complete_files(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Leaves the names of files to the shell."""
    return [CompletionItem(incomplete, type="file")]


def complete_runs(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offers the ids of runs, the newest first, and `last`."""
    found = [name for name in (*_run_ids(ctx), "last") if name.startswith(incomplete)]
    return [CompletionItem(name) for name in found]


def complete_items(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offers the ids of the items of the run that the command line names."""
    run = ctx.params.get("run")
    return _starting(_item_ids(ctx, run), incomplete) if isinstance(run, str) else []


def complete_runs_or_files(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Offers the ids of runs; where none begins so, files."""
    found = complete_runs(ctx, param, incomplete)
    return found if found and incomplete != "" else [*found, *complete_files(ctx, param, incomplete)]


def complete_cases(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Offers the ids of the cases of the file that the command line names."""
    return _starting(_case_ids(_bench(ctx), _bench_path(ctx)), incomplete)


def complete_models(
    ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Offers the models of the file that the command line names, then those whose price is known."""
    bench = _bench(ctx)
    written = [*_texts(bench.get("models")), *_texts(list(bench.get("model_configs") or ()))]
    found = _starting(written, incomplete)
    if not found and len(incomplete) >= LEAST_CHARS:
        from shared.upstream.prices import listed_models  # noqa: PLC0415 - reads a large table

        found = _starting(listed_models(), incomplete)
    return found


def complete_schemas(
    _ctx: click.Context, _param: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    """Offers the names of schemas."""
    from producer.schemas.catalog import names  # noqa: PLC0415 - imports every model

    return _starting(sorted(names()), incomplete)


def _starting(names: list[str], incomplete: str) -> list[CompletionItem[str]]:
    """Makes items of the names that begin so, each once."""
    found = [name for name in dict.fromkeys(names) if name.startswith(incomplete) and name.isprintable()]
    return [CompletionItem(name) for name in found[:MOST]]


def _texts(value: object) -> list[str]:
    """Returns the texts of a list; of anything else nothing."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _bench_path(ctx: click.Context) -> Path | None:
    """Returns the configuration that the command line names, as far as it is written.

    Looked for among the words themselves: click does not place arguments while an option lacks its value.
    """
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
    named = [Path(word.rpartition("=")[2]) for word in words if word.lower().endswith(BENCH_SUFFIXES)]
    if not named and ctx.find_root().info_name == "llm-bench":
        return Path(BENCH_CONFIG)
    return next((path for path in reversed(named) if path.is_file()), None)


def _bench(ctx: click.Context) -> Mapping[str, Any]:
    """Reads a configuration without checking it; empty if it is none, or too large."""
    path = _bench_path(ctx)
    text = _text_of(path) if path else ""
    if not text:
        return {}
    import yaml  # noqa: PLC0415 - only the names inside of a file need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        found = yaml.load(text, Loader=loader)  # noqa: S506 - both are safe loaders
        return found if isinstance(found, dict) else {}
    return {}


def _case_ids(bench: Mapping[str, Any], path: Path | None) -> list[str]:
    """Returns the ids of the cases of a configuration and of its data file, in their order."""
    written = bench.get("test_cases")
    cases = [*_data_rows(bench, path), *(written if isinstance(written, list) else ())]
    return [str(case["id"]) for case in cases if isinstance(case, dict) and case.get("id")]


def _data_rows(bench: Mapping[str, Any], path: Path | None) -> Iterator[Any]:
    """Yields the rows of the files of cases that a configuration names, but for patterns."""
    import csv  # noqa: PLC0415 - start-up: every command imports this module

    named_files = bench.get("test_cases_file")
    for named in [named_files] if isinstance(named_files, str) else _texts(named_files):
        if path is None:
            return
        text, suffix = _text_of(path.parent / named), PurePath(named).suffix.lower()
        with suppress(csv.Error, ValueError):
            if suffix in {".csv", ".tsv"}:
                yield from csv.DictReader(StringIO(text), delimiter="," if suffix == ".csv" else "\t")
            elif suffix in {".jsonl", ".ndjson"}:
                yield from (json.loads(line) for line in text.splitlines() if line.strip())


def _text_of(path: Path) -> str:
    """Reads a regular file; empty if it is none, or too large."""
    with suppress(OSError, ValueError):
        if path.is_file() and path.stat().st_size <= FILE_BYTES:
            return path.read_text(encoding="utf-8")
    return ""


def _run_ids(ctx: click.Context) -> list[str]:
    """Returns the names of streams and runs; an embedded server that stopped while idle is started again."""
    from shared.keys import RUNS_KEY, SERVED_KEY  # noqa: PLC0415 - only run ids need it
    from shared.server.client import RedisTarget  # noqa: PLC0415 - same
    from shared.server.embedded import ensure, server_places  # noqa: PLC0415 - same

    options = ctx.find_object(GlobalOptions)
    with suppress(Exception), ExitStack() as stack:  # a line that is typed shows no traceback
        settings = Settings.from_environment()
        if named := (options.redis if options else None) or settings.redis_url:
            target = RedisTarget.parse(named)
        elif server_places.recorded_socket(server_places.Places(settings.data_dir)):
            running = ensure(settings.data_dir, idle_s=settings.embedded_idle_s)
            target = stack.enter_context(running).target
        else:  # there never was one
            return []
        limits = {"socket_timeout_s": PATIENCE_S, "connect_timeout_s": PATIENCE_S}
        client = stack.enter_context(target.client(decode=True, **limits))
        streams = [f"served:{name}" for name in client.zrevrange(SERVED_KEY, 0, -1)]
        return [*streams, *map(str, client.zrevrange(RUNS_KEY, 0, NEWEST - 1))]
    return []


def _item_ids(ctx: click.Context, run: str) -> list[str]:
    """Returns the ids of items of a run, each once; none while no server answers, and none is started."""
    from producer import item_names, stored_runs, streams  # noqa: PLC0415 - only item ids need them
    from shared.runs import RunStore  # noqa: PLC0415 - same
    from shared.server.client import RedisTarget  # noqa: PLC0415 - same
    from shared.server.embedded.server_places import Places, recorded_socket  # noqa: PLC0415 - same

    options = ctx.find_object(GlobalOptions)
    settings = Settings.from_environment()
    named = (options.redis if options else None) or settings.redis_url
    path = None if named else recorded_socket(Places(settings.data_dir))
    if not named and path is None:
        return []
    with RedisTarget(parse_redis_url(named or f"unix://{path}")).client() as client:
        store = RunStore(client, patience_s=PATIENCE_S)
        if streams.is_stream(run):
            named = streams.window_of(store, run).name
        else:
            named = stored_runs.run_of_alias(store, run) or run
        names = item_names.names_of(store, store.info(named))
        return list(dict.fromkeys(name.own for name in islice(names, MOST_ITEMS)))
