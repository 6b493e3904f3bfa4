"""What has to hold after each fault: of every run, of what is left in Redis, and of processes at the end."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from time import monotonic
from typing import Any, Final

import psutil

from producer.document import document_of, pages_of, totals_of
from producer.report.formats import format_of
from shared.kinds import TURNS
from tests.chaos.cluster import Cluster
from tests.chaos.faults import Fault
from tests.chaos.needs import Setup
from tests.chaos.workloads import NAMES, SMALL, Workload
from tests.support.documents import printed
from tests.support.eventually import eventually
from tests.support.invariants import nothing_is_left
from tests.support.processes import ENDED
from tests.support.thread_oracle import Row, check_traces

AT_ONCE_S: Final = 45.0
"""A second run that takes longer did not work at once: two seconds on an idle machine, 27 at a load of 26."""


@dataclass(frozen=True)
class Measurement:
    """What one fault did to one run: a line of the matrix."""

    fault: str
    workload: str
    items: int
    lost: int
    """Items without an outcome."""
    twice: int
    """Items with more than one."""
    again: int
    """Calls that were made more than once."""
    begun: int
    """Calls under way at the strikes, and results that a killed Redis may take back."""
    standstill_s: float
    """The longest time without a new result, from the strike to the end."""
    recovery_s: float
    """From the healing, or the strike where nothing heals it, to the end of the standstill."""

    def __str__(self) -> str:
        """One printed line."""
        return (
            f"{self.fault}, {self.workload}: {self.lost} of {self.items} lost, {self.twice} twice, "
            f"{self.again} asked again (of {self.begun} in flight), "
            f"standstill {self.standstill_s:.1f} s, recovery {self.recovery_s:.1f} s"
        )

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def rows_of(cluster: Cluster, workload: Workload, name: str = "jsonl") -> list[Row]:
    """Reads a run's results, as `proctor results` prints them."""
    info, out = cluster.info(workload), BytesIO()
    report, totals = format_of(info.kind, name)(out, info), totals_of(info.kind)
    for page in pages_of(cluster.store, info):
        totals.add(page)
        report.page(page)
    report.end(document_of(info, totals))
    return [json.loads(line) for line in out.getvalue().splitlines()]


def document(cluster: Cluster, workload: Workload) -> dict[str, Any]:
    """Reads a run's document, as `proctor runs show --json` prints it."""
    info = cluster.info(workload)
    totals = totals_of(info.kind)
    for page in pages_of(cluster.store, info):
        totals.add(page)
    found: dict[str, Any] = printed(document_of(info, totals))
    return found


def problems_of(
    fault: Fault, cluster: Cluster, workload: Workload, rows: Sequence[Row], line: Measurement
) -> list[str]:
    """Lists the invariants of a run that do not hold."""
    if fault.loses_data:
        return _found({"the run is gone": lambda: _true(cluster.is_gone(workload))}, workload.name)
    allowed = line.begun if fault.kills or fault.takes_back_s else 0
    return _found(
        {
            "no item is lost and none is there twice": lambda: _true(line.lost == line.twice == 0),
            "results are in input order": lambda: _equal(
                [row["index"] for row in rows], list(range(workload.items))
            ),
            f"each item is {workload.outcome}": lambda: _equal(
                [row for row in rows if row["outcome"] != workload.outcome], []
            ),
            "each item says what it must, in the order of its thread": lambda: workload.check(rows),
            "one trace a turn": lambda: _traced(cluster, workload, rows),
            "totals are rows": lambda: _equal(
                {name: count for name, count in document(cluster, workload)["counts"].items() if count},
                {"total": workload.items, **Counter(row["outcome"] for row in rows)},
            ),
            f"at most {allowed} calls were made again": lambda: _true(line.again <= allowed),
            "each item was asked": lambda: _true(
                workload.asked is None or len(workload.calls()) == workload.items
            ),
        },
        workload.name,
    )


def problems_left(fault: Fault, cluster: Cluster) -> list[str]:
    """Lists what is wrong with the cluster now that its runs have ended."""
    return _found(
        {
            "commands end well": lambda: _commands_end(fault, cluster),
            "no lease, lock, inbox or wake-up is left": lambda: eventually(
                lambda: nothing_is_left(cluster.client, fetched=True), 30
            ),
            "a second run works at once": lambda: second_run(cluster),
            "no key is left after `runs rm`": lambda: remove_runs(cluster),
        },
        fault.name,
    )


def problems_at_end(cluster: Cluster) -> list[str]:
    """Ends the workers, and lists what is wrong with what stays."""
    return _found(
        {
            "workers end in good order": lambda: _workers_end(cluster),
            "no process is left": lambda: eventually(lambda: _no_orphan(cluster), 15),
            "no traceback in any log": lambda: _no_traceback(cluster),
        },
        "at the end",
    )


def second_run(cluster: Cluster) -> None:
    """Works on a small run of each kind, or of one where commands bring workers of their own."""
    began = monotonic()
    if cluster.needs.setup in {Setup.WORKERS, Setup.LOADING}:
        cluster.workloads = cluster.inputs(NAMES, SMALL)
        for workload in cluster.workloads:
            cluster.submit(workload)
        for workload in cluster.workloads:
            cluster.finished(workload)
    else:
        [workload] = cluster.workloads = cluster.inputs(["queries"], SMALL)
        done = cluster.cli("run", workload.file, "--processes", "1", *workload.arguments)
        assert done.code == 0, done
        cluster.find_runs()
    for workload in cluster.workloads:
        assert len(rows_of(cluster, workload)) == workload.items
    assert monotonic() - began < AT_ONCE_S, f"{monotonic() - began:.1f} s"


def remove_runs(cluster: Cluster) -> None:
    """Removes every run, and looks for keys that name one."""
    runs = [info.run for info in cluster.store.list(limit=1000)]
    done = cluster.cli("runs", "rm", "--yes", *runs)
    assert done.code == 0, done
    left = [
        name
        for name in (key.decode() for key in cluster.client.scan_iter("proctor:*", count=1000))
        if any(run in name for run in runs) or name.startswith("proctor:idem:")
    ]
    assert not left, left[:10]


def _commands_end(fault: Fault, cluster: Cluster) -> None:
    for process in cluster.commands.values():
        assert process.wait(60) == fault.exits, process.output_text()


def _workers_end(cluster: Cluster) -> None:
    for supervisor in cluster.supervisors:
        if supervisor.is_running():
            assert supervisor.stop(40) == 0, supervisor.output_text()
    if cluster.is_embedded:
        cluster.client.close()  # the last client, without which the server ends


def _no_orphan(cluster: Cluster) -> None:
    mine = f"PROCTOR_DATA_DIR={cluster.data_dir}"
    left = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            name = process.environ().get("PROCTOR_DATA_DIR")
            if name == str(cluster.data_dir) and process.status() not in ENDED:
                left.append(f"{process.pid}: {' '.join(process.cmdline())[:200]}")
    assert not left, "\n".join([mine, *left])


def _no_traceback(cluster: Cluster) -> None:
    logs = [*cluster.folder.rglob("*.err"), *cluster.folder.rglob("*.out"), *cluster.data_dir.rglob("*.log*")]
    for log in logs:
        text = log.read_text(errors="replace")
        at = text.find("Traceback")
        assert at < 0, f"{log.name}: {text[max(0, at - 300) : at + 2500]}"


def _traced(cluster: Cluster, workload: Workload, rows: Sequence[Row]) -> None:
    if workload.kind is TURNS:
        check_traces(rows_of(cluster, workload, "traces"), rows)


def _true(holds: object) -> None:
    assert holds


def _equal(found: object, expected: object) -> None:
    assert found == expected, f"{found!r}, not {expected!r}"[:500]


def _found(invariants: Mapping[str, Callable[[], object]], where: str) -> list[str]:
    """Lists the invariants that do not hold, each with why."""
    problems = []
    for words, check in invariants.items():
        try:
            check()
        except Exception as error:  # noqa: BLE001 - one broken invariant does not keep the others from being seen
            problems.append(f"{where}: NOT HELD: {words}: {type(error).__name__}: {error}")
    return problems
