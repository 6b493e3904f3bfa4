"""The table of faults: what strikes, for how long, and how it is healed. A fault is a row.

    Fault("wake-ups are deleted", strikes.wakes_deleted)
    Fault("one worker is stopped", signalled(strikes.one_worker, STOP), strikes.thawed, lasts_s=30)

Without a `heal` Proctor, or what supervises it, has to recover without anybody's help.
"""

import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos import strikes
from tests.chaos.cluster import Cluster
from tests.chaos.needs import Needs, Setup
from tests.chaos.strikes import Act, killed, nothing, signalled
from tests.chaos.workloads import ASKING, NAMES

UNWRITTEN_S: Final = 2.0
"""How long Redis with `appendfsync everysec` keeps writes to itself while an fsync is under way."""
SHARED: Final = Needs()
"""A cluster as most faults need it, which the next fault may strike too."""


@dataclass(frozen=True)
class Fault:
    """A row of the matrix."""

    name: str
    """As the table of docs/reliability.md has it."""
    strike: Act
    heal: Act = nothing
    lasts_s: float = 0.0
    """Between strike and healing."""
    lasts_leases: float = 0.0
    """The same, in leases, beside `lasts_s`."""
    every_s: float = 0.0
    """Between repeated strikes meanwhile; 0: one strike."""
    kills: bool = False
    """Whether calls under way are lost with the process that made them, or its lease, and made again."""
    takes_back_s: float = 0.0
    """Whose results a killed Redis may take back: they wait in its memory while the disk is busy."""
    loses_data: bool = False
    """Whether the runs are gone with Redis' disk."""
    is_cheap: bool = False
    """Whether it is cheap enough for the short form, in `make test`."""
    needs: Needs = SHARED
    workloads: Sequence[str] = NAMES
    """What is under way; with commands only what takes seconds without small chunks."""
    exits: int = 0
    """How each `proctor run` ends."""


WITH_BROKER: Final = Needs(broker=True)
WITH_CLOCK: Final = Needs(clock=True)
LOADING: Final = Needs(Setup.LOADING)
BORROWED: Final = Needs(Setup.BORROWED)
COMMANDS: Final = Needs(Setup.COMMANDS)
EMBEDDED: Final = Needs(Setup.EMBEDDED)
FULL: Final = Needs(Setup.COMMANDS, full_disk=True)
KILL, TERM, STOP = signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP

FAULTS: Final = (
    Fault("one worker is killed", signalled(strikes.one_worker, KILL), kills=True, is_cheap=True),
    Fault("all workers are killed", signalled(strikes.all_workers, KILL), kills=True, is_cheap=True),
    Fault(
        "the supervisor is killed",
        signalled(strikes.supervisors, KILL),
        lambda cluster: cluster.start_workers(),
        kills=True,
    ),
    Fault("one worker is ended (SIGTERM)", signalled(strikes.one_worker, TERM), is_cheap=True),
    Fault("all workers are ended (SIGTERM)", signalled(strikes.supervisors, TERM), strikes.drained),
    Fault(
        "one worker is stopped for longer than its lease",
        signalled(strikes.one_worker, STOP),
        strikes.thawed,
        lasts_leases=1.5,
        kills=True,
    ),
    Fault(
        "all workers are stopped for longer than their leases",
        signalled(strikes.all_workers, STOP),
        strikes.thawed,
        lasts_leases=1.5,
    ),
    Fault(
        "the command `proctor run` is killed",
        signalled(strikes.commands, KILL),
        strikes.resumed,
        kills=True,
        needs=COMMANDS,
        workloads=ASKING,
    ),
    Fault(
        "borrowed workers leave (SIGTERM)",
        signalled(strikes.supervisors, TERM),
        needs=BORROWED,
        workloads=ASKING,
    ),
    Fault(
        "borrowed workers are killed",
        signalled(strikes.supervisors, KILL),
        kills=True,
        needs=BORROWED,
        workloads=ASKING,
    ),
    Fault(
        "the embedded server is killed",
        killed(strikes.embedded_server),
        takes_back_s=UNWRITTEN_S,
        needs=EMBEDDED,
        workloads=ASKING,
    ),
    Fault(
        "the embedded server's guard is killed",
        killed(strikes.guard),
        takes_back_s=UNWRITTEN_S,
        needs=EMBEDDED,
        workloads=ASKING,
    ),
    Fault("eight commands start at once", nothing, needs=EMBEDDED, workloads=(*ASKING, *ASKING, *ASKING[:2])),
    Fault(
        "a submit is killed while it loads",
        strikes.submits_killed(after=False),
        Cluster.submit_again,
        needs=LOADING,
    ),
    Fault(
        "a submit is killed just after the seal",
        strikes.submits_killed(after=True),
        Cluster.submit_again,
        needs=LOADING,
    ),
    Fault(
        "Redis is killed for 2 s",
        lambda cluster: cluster.server.kill(),
        lambda cluster: cluster.server.start(),
        lasts_s=2,
        takes_back_s=UNWRITTEN_S,
        is_cheap=True,
    ),
    Fault(
        "Redis is killed for 20 s",
        lambda cluster: cluster.server.kill(),
        lambda cluster: cluster.server.start(),
        lasts_s=20,
        takes_back_s=UNWRITTEN_S,
    ),
    Fault(
        "Redis stands still for 30 s",
        lambda cluster: cluster.server.freeze(),
        lambda cluster: cluster.server.thaw(),
        lasts_s=30,
    ),
    Fault(
        "Redis' memory is full for 10 s",
        lambda cluster: cluster.client.config_set("maxmemory", "1mb"),
        lambda cluster: cluster.client.config_set("maxmemory", "0"),
        lasts_s=10,
    ),
    Fault(
        "Redis' disk is full for 10 s (MISCONF)",
        lambda cluster: strikes.disk_limited(cluster, 1),
        lambda cluster: strikes.disk_limited(cluster, resource.RLIM_INFINITY),
        lasts_s=10,
    ),
    Fault("Redis restarts without its data", strikes.data_lost, loses_data=True),
    Fault(
        "connections are closed every 0.4 s for 6 s",
        strikes.connections_killed,
        lasts_s=6,
        every_s=0.4,
        is_cheap=True,
    ),
    Fault(
        "connections are refused for 10 s",
        lambda cluster: cluster.door.refuse(),
        lambda cluster: cluster.door.admit(),
        lasts_s=10,
    ),
    Fault(
        "packets are lost for 20 s (black hole)",
        lambda cluster: cluster.door.hold(),
        lambda cluster: cluster.door.release(),
        lasts_s=20,
    ),
    Fault("connections are half open", lambda cluster: cluster.door.fall_silent()),
    Fault("wake-ups are deleted", strikes.wakes_deleted),
    Fault("each wake-up comes five times", strikes.wakes_multiplied, is_cheap=True),
    Fault("garbage is in the queues", strikes.garbage_sent, is_cheap=True),
    Fault("Redis' clock steps an hour ahead", strikes.clock_moved(strikes.HOUR), needs=WITH_CLOCK),
    Fault("Redis' clock steps an hour back", strikes.clock_moved(-strikes.HOUR), needs=WITH_CLOCK),
    Fault("workers join whose clock is an hour ahead", strikes.workers_join(clock_s=strikes.HOUR)),
    Fault("workers join whose clock is an hour behind", strikes.workers_join(clock_s=-strikes.HOUR)),
    Fault(
        "the broker, a server of its own, is killed for 10 s",
        lambda cluster: cluster.broker.kill(),
        lambda cluster: cluster.broker.start(),
        lasts_s=10,
        needs=WITH_BROKER,
    ),
    Fault(
        "the models are away for 20 s",
        lambda cluster: cluster.upstreams.leave(),
        lambda cluster: cluster.upstreams.come_back(),
        lasts_s=20,
        kills=True,
        workloads=("cases", "live turns"),
    ),
    Fault("the report's disk is full", nothing, needs=FULL, workloads=ASKING, exits=3),
)
