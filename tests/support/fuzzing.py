"""Fuzzes every loader and parser, guided by coverage: `make fuzz SECONDS=60`, or `… ARGS=stream` for some.

Each target has a process of its own for its share of the time, forked when everything is loaded. Bytes that a
parser does not refuse in its own errors, or on which it takes long or much memory, are kept and printed:

    python -m tests.support.fuzzing --read stream test-artifacts/fuzz/stream-crash-…    shows the traceback
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

ARTIFACTS: Final = Path("test-artifacts/fuzz")
MOST_BYTES: Final = 4_096
"""Of a document."""
READ_S: Final = 10
"""How long reading one document may take, instrumented."""
MEMORY_MB: Final = 2_048
OURS: Final = ["shared", "producer", "worker"]
"""Packages whose branches guide the search."""


def main(arguments: Sequence[str]) -> int:
    """Fuzzes for a time; 1 when something was found, 2 where atheris cannot be installed."""
    options = _options(arguments)
    if options.read:
        return _read(*options.read)
    try:
        atheris: Any = import_module("atheris")
    except ImportError:
        sys.stderr.write(
            "atheris has no wheel for this machine; `make test` tries the same parsers in short\n"
        )
        return 2
    with redirect_stderr(StringIO()), atheris.instrument_imports(include=OURS):  # it names every module
        fuzzed = import_module("tests.support.fuzz_targets")
    chosen = [name for name in fuzzed.TARGETS if not options.names or name in options.names]
    if not chosen:
        sys.stderr.write(f"no such target; one of {', '.join(fuzzed.TARGETS)}\n")
        return 2
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    seconds = max(1, options.seconds // len(chosen))
    found = [name for name in chosen if not _is_sound(atheris, fuzzed, name, seconds)]
    sys.stdout.write(f"{len(chosen)} parsers, {len(found)} with findings\n")
    return int(bool(found))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("names", nargs="*", metavar="TARGET", help="only these")
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together")
    parser.add_argument("--read", nargs=2, metavar=("TARGET", "FILE"), help="read a file that was found")
    return parser.parse_args(arguments)


def _is_sound(atheris: Any, fuzzed: Any, name: str, seconds: int) -> bool:
    """Fuzzes one target in a process of its own, and prints one line of what came of it."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        child = os.fork()
        if not child:
            with log.open("wb") as out:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
            _fuzz(atheris, fuzzed, name, Path(folder), seconds)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = log.read_text(errors="replace")
    runs = next((line.split()[1] for line in text.splitlines() if line.startswith("Done ")), "")
    ended = f"FOUND\n{text[-4_000:]}" if code else f"{runs} documents in {seconds} s"
    sys.stdout.write(f"{name:<20} {ended}\n")
    sys.stdout.flush()
    return not code


def _fuzz(atheris: Any, fuzzed: Any, name: str, folder: Path, seconds: int) -> None:
    """Fuzzes one target; ends the process."""
    target, corpus = fuzzed.TARGETS[name], folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)
    prefix = f"{ARTIFACTS}/{name.replace(' ', '-')}-"
    limits = [f"-max_len={MOST_BYTES}", f"-timeout={READ_S}", f"-rss_limit_mb={MEMORY_MB}"]
    words = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-artifact_prefix={prefix}", *limits]
    atheris.Setup(words, lambda data: _ignored(fuzzed.read(target, data)))
    atheris.Fuzz()


def _ignored(_value: object) -> None:
    """What a fuzzed function returns has to be nothing."""


def _read(name: str, path: str) -> int:
    """Reads a file as a target does."""
    fuzzed = import_module("tests.support.fuzz_targets")
    sys.stdout.write(f"{fuzzed.read(fuzzed.TARGETS[name], Path(path).read_bytes())!r}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
