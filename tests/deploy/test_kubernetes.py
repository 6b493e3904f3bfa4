"""Holds kubernetes/ to what no schema knows: rights, times, secrets, selectors, and KEDA's objects."""

import json
import os
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml

from shared.kinds import all_kinds
from shared.upstream.model_target import DEFAULT_TIMEOUT_S
from tests.deploy.check import OVERLAYS, rendered
from tests.deploy.tools import find_tool
from tests.support.cli import Cli
from tests.support.deployed_redis import check_redis
from tests.support.deployment import (
    DEPLOY,
    SUPERVISOR_MARGIN_S,
    default_grace_s,
    documents,
    is_ours,
    kubernetes_files,
    pods,
)
from tests.support.tree import ROOT

FOLDER: Final = DEPLOY / "kubernetes"
SCHEMA: Final = ROOT / "tests" / "data" / "keda_scaled_object.json"
MODEL_CALL_S: Final = DEFAULT_TIMEOUT_S
PRE_STOP_S: Final = 5
"""What the hooks of Flower and the exporter wait, which counts against the time to stop."""


@cache
def rendered_in(folder: str | Path) -> list[dict[str, Any]]:
    """Everything that a folder below kubernetes/ renders to; skips the test where there is no kubectl."""
    kubectl = find_tool("kubectl")
    if kubectl is None:
        pytest.skip("needs kubectl (make check-deploy unpacks it on Linux on x86-64)")
    return list(yaml.safe_load_all(rendered(FOLDER / folder, kubectl)))


def overlay(name: str) -> list[dict[str, Any]]:
    """Everything that an overlay renders to."""
    return rendered_in(f"overlays/{name}")


def of_kind(name: str, kind: str) -> dict[str, dict[str, Any]]:
    """An overlay's objects of a kind by name."""
    return {each["metadata"]["name"]: each for each in overlay(name) if each["kind"] == kind}


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_pod_is_restricted(name: str) -> None:
    """A pod holds to the restricted Pod Security Standard, with limits and a read-only root and no token."""
    for workload, pod in pods(overlay(name)):
        assert pod["automountServiceAccountToken"] is False, workload
        security = pod["securityContext"]
        assert security["runAsNonRoot"] is True
        assert security["runAsUser"] > 0
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert "memory" in container["resources"]["limits"]
            assert {"cpu", "memory"} <= set(container["resources"]["requests"])
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
            tag = container["image"].rpartition(":")[2]
            assert tag.count(".") == 2, f"{container['image']} is not pinned"


@pytest.mark.parametrize("name", OVERLAYS)
def test_there_is_more_time_to_stop_than_the_grace_period(name: str) -> None:
    """Kubernetes kills later than a supervisor does, which kills later than the configured grace period."""
    (settings,) = (each["data"] for each in of_kind(name, "ConfigMap").values())
    grace_s = float(settings.get("PROCTOR_GRACE_S", default_grace_s()))
    for workload, pod in pods(overlay(name)):
        if is_ours(pod["containers"][0]["image"]):
            needed = grace_s + SUPERVISOR_MARGIN_S + PRE_STOP_S
            assert pod["terminationGracePeriodSeconds"] > needed, workload
    assert grace_s > MODEL_CALL_S, "a call in flight is not interrupted, which would pay it twice"


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_kind_has_workers_with_a_budget_and_a_heartbeat(name: str) -> None:
    """A kind has its Deployment, whose probes read the heartbeat, and a budget that selects its pods."""
    for kind in all_kinds():
        deployment = of_kind(name, "Deployment")[f"worker-{kind}"]
        assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["args"] == ["worker", "--queues", kind.name]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["exec"]["command"][:3] == ["proctor", "health", "worker"]
        budget = of_kind(name, "PodDisruptionBudget")[f"worker-{kind}"]
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert budget["spec"]["selector"] == deployment["spec"]["selector"]


@pytest.mark.parametrize("name", OVERLAYS)
def test_services_and_policies_select_pods_that_exist(name: str) -> None:
    """Every selector of a Service and of a NetworkPolicy matches the labels of at least one pod."""
    labels = [
        each["spec"]["template"]["metadata"]["labels"]
        for each in overlay(name)
        if each["kind"] in {"Deployment", "StatefulSet"}
    ]
    selectors = {f"Service {n}": s["spec"]["selector"] for n, s in of_kind(name, "Service").items()}
    for policy_name, policy in of_kind(name, "NetworkPolicy").items():
        selectors[f"NetworkPolicy {policy_name}"] = policy["spec"]["podSelector"].get("matchLabels", {})
    for what, selector in selectors.items():
        assert any(selector.items() <= each.items() for each in labels), what
    denied = of_kind(name, "NetworkPolicy")["default-deny"]["spec"]
    assert denied == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


RESOLVERS: Final = {
    "CoreDNS or kube-dns": ({"kubernetes.io/metadata.name": "kube-system"}, "", 53),
    "NodeLocal DNSCache": ({}, "169.254.20.10/32", 53),
    "OpenShift": ({"kubernetes.io/metadata.name": "openshift-dns"}, "", 5353),
}
"""Where pods resolve names: name space, or address, and port."""


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("name", OVERLAYS)
def test_every_pod_may_resolve_names(name: str, resolver: str) -> None:
    """The name servers of the usual distributions are allowed, by UDP and TCP."""
    namespace, address, port = RESOLVERS[resolver]
    peer = {"ipBlock": {"cidr": address}} if address else {"namespaceSelector": {"matchLabels": namespace}}
    rules = of_kind(name, "NetworkPolicy")["names-and-redis"]["spec"]["egress"]
    ports = [{"protocol": protocol, "port": port} for protocol in ("UDP", "TCP")]
    assert any(peer in rule.get("to", []) and rule["ports"] == ports for rule in rules)


def test_a_job_in_the_cluster_can_submit() -> None:
    """The rendered Job is restricted, has the labels that Redis admits, and mounts its files and the URL."""
    (job,) = (each for each in rendered_in("submit") if each["kind"] == "Job")
    (files,) = (each for each in rendered_in("submit") if each["kind"] == "ConfigMap")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (worker,) = of_kind("small", "Deployment")["worker-turns"]["spec"]["template"]["spec"]["containers"]
    assert job["metadata"]["namespace"] == "proctor"
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == worker["securityContext"]
    assert container["image"] == worker["image"]
    admitted = of_kind("small", "NetworkPolicy")["proctor-to-redis"]["spec"]["ingress"][0]["from"][0]
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert admitted["podSelector"]["matchLabels"].items() <= labels.items()
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["files"]["configMap"]["name"] == files["metadata"]["name"]
    assert container["args"][1] in {f"/files/{name}" for name in files["data"]}
    assert volumes["redis"]["secret"]["secretName"] == "proctor-redis"


def test_traces_may_reach_a_collector(tmp_path: Path) -> None:
    """The component sets the endpoint and lets workers connect to it."""
    base, component = (
        os.path.relpath(FOLDER / each, tmp_path) for each in ("overlays/small", "components/otlp")
    )
    written = {"resources": [base], "components": [component]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    found = rendered_in(tmp_path)
    (settings,) = (each["data"] for each in found if each["kind"] == "ConfigMap")
    assert settings["OTEL_EXPORTER_OTLP_ENDPOINT"].endswith(":4318")
    (policy,) = (each["spec"] for each in found if each["metadata"]["name"] == "workers-to-collector")
    assert policy["egress"][0]["ports"] == [{"protocol": "TCP", "port": 4318}]


@pytest.mark.parametrize("name", OVERLAYS)
def test_secrets_that_are_mounted_are_those_of_the_example(name: str) -> None:
    """Each Secret that a pod names is in secrets.example.yaml, and each of its mounted keys is there."""
    example = {
        each["metadata"]["name"]: set(each["stringData"])
        for each in documents(FOLDER / "secrets.example.yaml")
    }
    for workload, pod in pods(overlay(name)):
        for volume in pod["volumes"]:
            if secret := volume.get("secret"):
                assert secret["secretName"] in example, workload
                assert {item["key"] for item in secret.get("items", ())} <= example[secret["secretName"]]
        for container in pod["containers"]:
            for source in container.get("envFrom", ()):
                assert source.get("secretRef", {}).get("name", "proctor-redis") in example
            assert not [each for each in container.get("env", ()) if "valueFrom" in each]


def test_no_file_holds_a_secret() -> None:
    """Secrets are examples without values, and no overlay renders one."""
    for each in documents(*kubernetes_files()):
        if each.get("kind") == "Secret":
            assert "data" not in each
            assert set(each["stringData"].values()) == {""}
    assert all(not of_kind(name, "Secret") for name in OVERLAYS)


def test_every_file_is_part_of_an_overlay() -> None:
    """Each YAML file is a kustomization, is named by one, or is the example of Secrets."""
    named = set()
    for path in FOLDER.rglob("kustomization.yaml"):
        for document in documents(path):
            paths = [*document.get("resources", ()), *document.get("components", ())]
            paths += [each["path"] for each in document.get("patches", ()) if "path" in each]
            named |= {(path.parent / each).resolve() for each in paths}
    assert all(path.exists() for path in named)
    files = {path for path in kubernetes_files() if path.name != "kustomization.yaml"}
    assert files - named == {FOLDER / "secrets.example.yaml"}


def test_the_fleet_is_scaled_by_its_backlog() -> None:
    """Each kind has a valid ScaledObject on the ledger's backlog, from zero, and no number of replicas."""
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    scaled = of_kind("production", "ScaledObject")
    deployments = of_kind("production", "Deployment")
    assert {each["spec"]["scaleTargetRef"]["name"] for each in scaled.values()} == {
        f"worker-{kind}" for kind in all_kinds()
    }
    (settings,) = (each["data"] for each in of_kind("production", "ConfigMap").values())
    for kind in all_kinds():
        found = scaled[f"worker-{kind}"]
        assert not [error.message for error in validator.iter_errors(found)]
        spec = found["spec"]
        assert spec["minReplicaCount"] == 0
        assert spec["cooldownPeriod"] > float(settings["PROCTOR_GRACE_S"])
        (trigger,) = spec["triggers"]
        # An unknown backlog keeps the number of pods: it is no 0, and nothing sets another number.
        assert trigger["metadata"]["ignoreNullValues"] == "false"
        assert "fallback" not in spec
        assert trigger["metadata"]["query"] == f'sum(proctor_backlog_items{{kind="{kind}"}})'
        assert "replicas" not in deployments[f"worker-{kind}"]["spec"]
    assert of_kind("small", "Deployment")["worker-turns"]["spec"]["replicas"] == 1
    assert not of_kind("small", "ScaledObject")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda spec: spec["triggers"][0]["metadata"].update(threshold=200),
        lambda spec: spec["triggers"][0]["metadata"].pop("query"),
        lambda spec: spec.update(minReplicas=0),
        lambda spec: spec.pop("scaleTargetRef"),
        lambda spec: spec["triggers"][0].update(type="redis"),
    ],
    ids=["a number without quotes", "no query", "a wrong name", "no target", "another trigger"],
)
def test_a_mistake_in_a_scaled_object_is_found(spoil: Callable[[dict[str, Any]], object]) -> None:
    """The schema for KEDA's objects refuses the mistakes that its API server would refuse."""
    validator = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text(encoding="utf-8")))
    (found, *_) = documents(FOLDER / "components" / "keda" / "scaled-objects.yaml")
    assert validator.is_valid(found)
    spoilt = deepcopy(found)
    spoil(spoilt["spec"])
    assert not validator.is_valid(spoilt)


def test_the_redis_of_the_small_overlay_can_carry_the_ledger(
    container_redis: Callable[[list[str]], dict[str, str]], cli: Cli
) -> None:
    """With the StatefulSet's arguments the server pleases `proctor doctor` and asks for a password."""
    (pod,) = (pod for _, pod in pods(documents(FOLDER / "overlays" / "small" / "redis.yaml")))
    args = [word.replace("/run/secrets/redis/", "/run/secrets/") for word in pod["containers"][0]["args"]]
    check_redis(args, container_redis, cli)
