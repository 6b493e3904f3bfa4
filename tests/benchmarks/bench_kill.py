"""Kills one of two workers at half of 1,000 test cases: what is lost, asked again, and how long it takes."""

import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from tests.support.kill_cases import LATENCY_S, kill_amid_cases
from tests.support.processes import Processes, kill_all, mark_this_session, marked_processes
from tests.support.redis_server import RedisServer
from tests.support.tree import ROOT

CASES: Final = 1000
TOGETHER: Final = 20


def main() -> None:
    """Prints the row."""
    mark_this_session()
    with RedisServer() as server, tempfile.TemporaryDirectory(prefix="bench-kill-") as name:
        folder = Path(name)
        env = {**os.environ, "PROCTOR_REDIS_URL": server.url, "PROCTOR_DATA_DIR": name}
        processes = Processes(folder, {**env, "PYTHONPATH": str(ROOT)})
        try:
            with closing(server.client()) as client:
                rows, asked, tally, left, seconds = kill_amid_cases(
                    client, server.url, folder, processes, cases=CASES, together=TOGETHER
                )
        finally:
            processes.close()
    lost, again = sum(not row.code for row in rows), asked.total() - len(asked)
    ideal_s = left * LATENCY_S / TOGETHER
    print(f"kill -9 of one of two workers at half of {CASES:,} cases, {TOGETHER} in flight:")
    print(f"  lost {lost}, asked again {again}, summary {'exact' if tally['passed'] == CASES else 'WRONG'}")
    print(f"  ended {seconds:.1f} s after the kill; the {left} cases left take {ideal_s:.1f} s by themselves")
    kill_all(marked_processes())


if __name__ == "__main__":
    main()
