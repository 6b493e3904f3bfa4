"""Builds the image's steps and runs it as a container engine would: other user, read-only, no capabilities.

What stands in for the engine is described in tests/support/container.py; what is not covered is the base
image itself, whose place this machine's /usr and interpreter take.
"""

import json
import os
import platform
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil
import pytest

from tests.support.container import Container, require_containers
from tests.support.eventually import eventually
from tests.support.image import Image, build
from tests.support.ports import free_port
from tests.support.processes import Process, Processes
from tests.support.redis_server import RedisServer
from tests.support.syscall_filter import Rule
from tests.support.tree import ROOT, project_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PASSWORD: Final = "image-test"  # noqa: S105 - of a server on loopback that lives for seconds
URL_FILE: Final = "/run/secrets/redis-url"
DATA: Final = "/var/lib/proctor"
FILES: Final = "/run/files"
READY_S: Final = 60.0

EPERM, ENOSYS = 1, 38
PR_SET_SECCOMP: Final = 22
PROT_WRITE, PROT_EXEC = 2, 4
NEW_NAMESPACES: Final = 0x7E020000
"""All CLONE_NEW… flags; a container's processes get none of them."""
AF_VSOCK: Final = 40


class Calls(NamedTuple):
    """Numbers of system calls on one processor family."""

    clone: int
    prctl: int
    socket: int
    seccomp: int
    mmap: int
    mprotect: int
    denied: tuple[int, ...]
    """unshare, setns, mount, umount2, pivot_root, bpf, perf_event_open, keyctl, add_key, request_key,
    userfaultfd, kexec_load, open_by_handle_at, reboot, init_module, syslog."""


CLONE3, IO_URING, LANDLOCK = 435, (425, 426, 427), (444, 445, 446)
"""The same on all families."""
X86_64: Final = Calls(
    56, 157, 41, 317, 9, 10, (272, 308, 165, 166, 155, 321, 298, 250, 248, 249, 323, 246, 304, 169, 175, 103)
)
AARCH64: Final = Calls(
    220, 167, 198, 277, 222, 226, (97, 268, 40, 39, 41, 280, 241, 219, 217, 218, 282, 104, 265, 142, 105, 116)
)
FAMILY: Final = {"x86_64": X86_64, "aarch64": AARCH64}.get(platform.machine(), X86_64)


def engine_rules() -> list[Rule]:
    """What matters of what Docker's and containerd's default profiles take from a process without rights.

    They allow `prctl`, `seccomp` and, since 2021, `landlock_*`: all that the sandbox needs.
    """
    return [
        *((number, "any", 0, 0, EPERM) for number in (*FAMILY.denied, *IO_URING)),
        (FAMILY.clone, "bits", 0, NEW_NAMESPACES, EPERM),
        (CLONE3, "any", 0, 0, ENOSYS),
        (FAMILY.socket, "eq", 0, AF_VSOCK, EPERM),
    ]


def memory_rules() -> list[Rule]:
    """What systemd's MemoryDenyWriteExecute refuses: memory to write and execute, and to execute later on."""
    return [
        (FAMILY.mmap, "all", 2, PROT_WRITE | PROT_EXEC, EPERM),
        (FAMILY.mprotect, "bits", 2, PROT_EXEC, EPERM),
    ]


NO_LANDLOCK: Final = [(number, "any", 0, 0, EPERM) for number in LANDLOCK]
"""As profiles before 2021, and systemd's @system-service, which know no landlock."""
NO_FILTERS: Final = [
    (FAMILY.prctl, "eq", 0, PR_SET_SECCOMP, EPERM),
    (FAMILY.seccomp, "any", 0, 0, EPERM),
]
"""As a profile that lets no process lock itself."""

BENCH: Final = """
name: image
system_prompt: Answer.
models: [m]
validators_file: validators.py
test_cases:
  - {id: good, input: a, validator: is_short, regex_pattern: "^ye.$", outputs: {m: "yes"}}
  - {id: bad, input: b, validator: is_short, outputs: {m: "no, never, not at all"}}
"""
VALIDATORS: Final = "def is_short(output: str) -> bool:\n    return len(output) < 10\n"


class Box:
    """Containers of the image, all with one data volume, one secret and one Redis."""

    def __init__(self, image: Image, folder: Path, processes: Processes, port: int) -> None:
        self.image, self.processes = image, processes
        self.data, self.files, self.secret = folder / "data", folder / "files", folder / "redis-url"
        self.data.mkdir()
        self.files.mkdir()
        os.chown(self.data, 10001, 10001)
        os.chown(self.files, 10001, 10001)
        self.secret.write_text(f"redis://worker:{PASSWORD}@127.0.0.1:{port}/0\n")

    def container(self, rules: list[Rule] | None = None) -> Container:
        """A container as compose.yaml and the Deployments start one."""
        return Container(
            self.image.root,
            {**self.image.env, "PROCTOR_REDIS_URL_FILE": URL_FILE, "PROCTOR_PROCESSES": "1"},
            workdir=self.image.stage.workdir,
            user=self.image.stage.user,
            read_only=True,
            writable={self.data: DATA, self.files: FILES},
            readable={self.secret: URL_FILE},
            filter_rules=engine_rules() if rules is None else rules,
        )

    def start(self, *arguments: str, rules: list[Rule] | None = None) -> Process:
        """Starts the entry point with arguments, by default those of the image."""
        stage = self.image.stage
        program = [*stage.entrypoint, *(arguments or stage.command)]
        return self.processes.start(*self.container(rules).command(*program), new_session=True)

    def run(self, *program: str) -> Process:
        """Runs any program in a container to its end."""
        process = self.processes.start(*self.container().command(*program), new_session=True)
        process.wait(READY_S)
        return process

    def wait_until_healthy(self, worker: Process) -> None:
        """Waits until the image's health check says that the worker is at work."""

        def is_healthy() -> None:
            done = self.run(*self.image.stage.healthcheck)
            assert done.popen.returncode == 0, worker.output_text()

        eventually(is_healthy, READY_S)

    def results(self, bench: Path) -> tuple[int, dict[str, dict[str, Any]]]:
        """Runs a bench against the workers that are there; returns exit code and results by case."""
        for name in (bench.name, "validators.py"):
            shutil.copy(bench.parent / name, self.files / name)
        run = self.run("proctor", "run", f"{FILES}/{bench.name}", "-o", f"{FILES}/out.jsonl", "-q")
        rows = [json.loads(line) for line in (self.files / "out.jsonl").read_text().splitlines()]
        return run.wait(), {row["result"]["case_id"]: row for row in rows}


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """The image, built once for the file."""
    require_containers()
    folder = tmp_path_factory.mktemp("image")
    yield build(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def box(image: Image, tmp_path: Path, processes: Processes) -> Iterator[Box]:
    """Containers with a Redis in which they have a user."""
    port = free_port()
    user = ("--user", "worker", "on", f">{PASSWORD}", "~*", "&*", "+@all")
    with RedisServer("--port", str(port), *user):
        yield Box(image, tmp_path, processes, port)


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Two cases with recorded answers and a validator: one passes, one fails."""
    (tmp_path / "validators.py").write_text(VALIDATORS)
    path = tmp_path / "bench.config.yaml"
    path.write_text(BENCH)
    return path


def pid_1(process: Process) -> psutil.Process:
    """The program that is process 1 of a container."""
    (child,) = psutil.Process(process.pid).children()
    return child


def test_the_image_holds_the_program_and_no_tools(image: Image) -> None:
    """No installer and no build tool reach the image, all of it belongs to root, and its code is ours."""
    installed = image.root / "opt" / "proctor"
    (packages,) = installed.glob("lib/python*/site-packages")
    names = {path.name.split("-")[0] for path in packages.glob("*.dist-info")}
    assert "proctor" in names
    assert not names & {"pip", "uv", "hatchling", "pytest"}
    assert not (image.root / "src").exists() or not list((image.root / "src").iterdir())
    foreign = [
        path
        for path in installed.rglob("*")
        if path.lstat().st_uid or (path.lstat().st_mode & 0o022 and not path.is_symlink())
    ]
    assert not foreign
    ours = {path.relative_to(ROOT).as_posix() for path in project_files()}
    shipped = {name for name in ours if name.split("/")[0] in {"shared", "worker", "producer", "proctor"}}
    shipped |= {f"producer/{name}" for name in ours if name.startswith("examples/")}
    assert all((packages / name).exists() for name in shipped)
    assert list((packages / "worker").rglob("*.pyc")), "bytecode is made when the image is built"


def test_the_root_is_read_only_and_the_user_has_no_rights(box: Box) -> None:
    """As the image's user nothing can be written but the data folder and /tmp, and no capability is left."""
    for place, code in (("/opt/proctor/x", 1), ("/x", 1), ("/etc/x", 1), (f"{DATA}/x", 0), ("/tmp/x", 0)):  # noqa: S108 - the container's own
        done = box.run("sh", "-c", f"touch {place} || exit 1")
        assert done.popen.returncode == code, f"{place}: {done.output_text()}"
    status = box.run("cat", "/proc/self/status").output
    assert "Uid:\t10001\t10001\t10001\t10001" in status
    assert "CapBnd:\t0000000000000000" in status
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status


def test_the_default_command_works_and_ends_in_order(box: Box, bench: Path) -> None:
    """The image's own command is a worker that gets healthy, does turns and cases, and drains at SIGTERM."""
    before = box.run(*box.image.stage.healthcheck)
    assert before.popen.returncode == 1
    assert "no worker is alive" in before.errors
    worker = box.start()
    box.wait_until_healthy(worker)
    (packages,) = (box.image.root / "opt" / "proctor").glob("lib/python*/site-packages")
    example = "/" + str((packages / "producer" / "examples" / "turns.jsonl").relative_to(box.image.root))
    turns = box.run("proctor", "run", example, "-q", "-o", f"{FILES}/turns.jsonl")
    assert turns.popen.returncode == 0, turns.output_text()
    expected = len((ROOT / "examples" / "turns.jsonl").read_text().splitlines())
    assert len((box.files / "turns.jsonl").read_text().splitlines()) == expected
    code, rows = box.results(bench)
    assert code == 1
    assert {name: row["outcome"] for name, row in rows.items()} == {"good": "passed", "bad": "failed"}
    program = pid_1(worker)
    assert program.uids().effective == 10001
    program.send_signal(signal.Signals[box.image.stage.stop_signal])
    assert worker.wait(40) == 0, worker.output_text()
    after = box.run(*box.image.stage.healthcheck)
    assert after.popen.returncode == 1, "its heartbeat is gone"


def test_the_sandbox_needs_no_landlock(box: Box, bench: Path) -> None:
    """Under a profile that knows no landlock validators run all the same: the filter alone locks them."""
    worker = box.start(rules=[*engine_rules(), *NO_LANDLOCK])
    box.wait_until_healthy(worker)
    _, rows = box.results(bench)
    assert {name: row["outcome"] for name, row in rows.items()} == {"good": "passed", "bad": "failed"}


def test_validators_are_refused_where_nothing_can_be_locked(box: Box, bench: Path) -> None:
    """Under a profile without prctl(PR_SET_SECCOMP) no validator runs, and each case says what is missing."""
    worker = box.start(rules=[*engine_rules(), *NO_FILTERS])
    box.wait_until_healthy(worker)
    code, rows = box.results(bench)
    assert code == 1
    for row in rows.values():
        assert row["outcome"] != "passed"
        text = json.dumps(row)
        assert "validators and JavaScript are not run here: seccomp: Operation not permitted" in text
    assert (box.files / "out.jsonl").exists()


def test_work_needs_no_memory_to_write_and_execute(box: Box, bench: Path) -> None:
    """Under MemoryDenyWriteExecute, as the systemd units have it, turns, cases and the sandbox work."""
    worker = box.start(rules=memory_rules())
    box.wait_until_healthy(worker)
    _, rows = box.results(bench)
    assert {name: row["outcome"] for name, row in rows.items()} == {"good": "passed", "bad": "failed"}
    # What a worker imports before its first call of a named model.
    load = "import os; os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'; import litellm, aiohttp, celery"
    done = box.container(memory_rules()).run("python", "-c", load)
    assert done.returncode == 0, done.stderr


def test_other_programs_of_the_image_start(box: Box) -> None:
    """Flower comes up in the same image with a probe that needs no curl."""
    port = free_port()
    flower = box.start("flower", "--address", "127.0.0.1", "--port", str(port))

    def answers() -> None:
        probe = box.run("proctor", "health", "http", f"http://127.0.0.1:{port}/healthcheck")
        assert probe.popen.returncode == 0, flower.output_text()

    eventually(answers, READY_S)
    pid_1(flower).send_signal(signal.SIGTERM)
    assert flower.wait(20) == 0, flower.output_text()
