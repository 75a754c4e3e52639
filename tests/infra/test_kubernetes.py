"""Values for charts, and the cluster's own spec. Charts cannot be rendered here (no Helm), so their values
are compared with the names that the charts read, and pods that we write ourselves with Kubernetes' schema."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from flows.stack.registered import GPU_LIMIT
from tests.infra.files import INFRA, PROJECT, ROOT, check_environment, leaves, load

VERSION = "1.33"
CLUSTER = load("kubernetes/dask-cluster.yaml")
PODS = {"scheduler": CLUSTER["spec"]["scheduler"]["spec"], "worker": CLUSTER["spec"]["worker"]["spec"]}
SECURITY = "runAsUser runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation capabilities.drop"
RESOURCES = "requests.cpu requests.memory limits.cpu limits.memory"
PROBE = "initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold"
POD = "runAsUser runAsNonRoot fsGroup seccompProfile.type"

# Read by the charts' templates: github.com/PrefectHQ/prefect-helm and dask/dask-kubernetes, 2025 and 2026.
KNOWN: dict[str, dict[str, str]] = {
    "prefect-server": {
        "global.prefect": "image.repository image.prefectTag env",
        "server": "replicaCount basicAuth.enabled basicAuth.existingSecret uiConfig.prefectUiApiUrl "
        "livenessProbe.enabled readinessProbe.enabled",
        "server.resources": RESOURCES,
        "server.livenessProbe.config": PROBE,
        "server.readinessProbe.config": PROBE,
        "server.podSecurityContext": POD,
        "server.containerSecurityContext": SECURITY,
        "migrations": "enabled",
        "migrations.resources": RESOURCES,
        "migrations.securityContext": SECURITY,
        "service": "type",
        "secret": "create name",
        "postgresql": "enabled",
    },
    "prefect-worker": {
        "worker": "apiConfig replicaCount extraEnvVars extraEnvVarsSecrets extraVolumes extraVolumeMounts "
        "image.repository image.prefectTag livenessProbe.enabled selfHostedServerApiConfig.apiUrl",
        "worker.config": "workPool type installPolicy limit",
        "worker.resources": RESOURCES,
        "worker.livenessProbe.config": PROBE,
        "worker.podSecurityContext": POD,
        "worker.containerSecurityContext": SECURITY,
        "serviceAccount": "create name",
        "role": "create",
        "rolebinding": "create",
    },
    "dask-operator": {
        "rbac": "create cluster",
        "": "kopfArgs",
        "resources": RESOURCES,
        "podSecurityContext": "seccompProfile.type",
    },
}


def names(chart: str) -> set[str]:
    return {f"{area}.{name}".strip(".") for area, many in KNOWN[chart].items() for name in many.split()}


def environment(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "given") for entry in entries}


@pytest.mark.parametrize("chart", KNOWN)
def test_charts_read_every_value_that_we_set(chart: str) -> None:
    assert {path for path, _ in leaves(load(f"kubernetes/{chart}.yaml"))} == names(chart)


def offered(path: str) -> list[dict[str, Any]]:
    """Entries of a list that a file has as comments, to be taken in."""
    lines = re.findall(r"^ *# ?(- \{.*\})", (INFRA / path).read_text(), re.M)
    here = [line.replace("/app/", f"{ROOT}/") for line in lines]  # where the image has what it copies
    return [entry for line in here for entry in yaml.safe_load(line)]


def test_for_gpus_every_place_that_has_to_change_says_so() -> None:
    """Client, scheduler and workers of Dask need one version, and without the device all of it would go on on
    CPUs."""
    tag = f"{PROJECT['version']}-gpu"
    cluster, worker, told = (
        (INFRA / path).read_text()
        for path in ("kubernetes/dask-cluster.yaml", "kubernetes/prefect-worker.yaml", "README.md")
    )
    assert cluster.count(tag) == 2 and worker.count(tag) == 1
    assert {"name": "MUDG_COMPUTE__DEVICE", "value": "cuda"} in offered("kubernetes/prefect-worker.yaml")
    section = told.partition("## Kubernetes\n")[2].partition("\n## ")[0]
    assert tag in section and "MUDG_COMPUTE__DEVICE" in section and f"gcl create {GPU_LIMIT} " in section


def test_environments_are_understood() -> None:
    check_environment(environment(offered("kubernetes/prefect-worker.yaml")))
    check_environment(environment(load("kubernetes/prefect-worker.yaml")["worker"]["extraEnvVars"]))
    check_environment(environment(load("kubernetes/prefect-server.yaml")["global"]["prefect"]["env"]))
    for pod in PODS.values():
        check_environment(environment(pod["containers"][0].get("env", [])))


@pytest.mark.parametrize("part", PODS)
def test_pods_of_the_cluster_are_pods_of_kubernetes(part: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": PODS[part]}
    kubernetes_validate.validate(pod, VERSION, strict=True)
    bad = pod | {"spec": PODS[part] | {"contaniers": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(bad, VERSION, strict=True)


def test_the_schedulers_service_is_one_of_kubernetes_and_finds_it() -> None:
    spec, name = CLUSTER["spec"]["scheduler"]["service"], CLUSTER["metadata"]["name"]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "scheduler"}, "spec": spec}
    kubernetes_validate.validate(service, VERSION, strict=True)
    assert spec["selector"] == {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
    ports = {port["name"]: port["containerPort"] for port in PODS["scheduler"]["containers"][0]["ports"]}
    assert {port["targetPort"]: port["port"] for port in spec["ports"]} == ports
    assert ports == {"tcp-comm": 8786, "http-dashboard": 8787}


@pytest.mark.parametrize("part", PODS)
def test_pods_are_bounded_and_closed(part: str) -> None:
    pod, [container] = PODS[part], PODS[part]["containers"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}
    assert container["args"][:2] == ["dask", part]
    assert {"name": "tmp", "mountPath": "/tmp"} in container["volumeMounts"]


def test_everything_is_of_one_image_in_one_namespace_and_finds_its_fellows() -> None:
    images = {pod["containers"][0]["image"] for pod in PODS.values()}
    server = load("kubernetes/prefect-server.yaml")["global"]["prefect"]["image"]
    worker = load("kubernetes/prefect-worker.yaml")["worker"]
    images |= {f"{image['repository']}:{image['prefectTag']}" for image in (server, worker["image"])}
    assert images == {f"registry.example.org/mudg:{PROJECT['version']}-cpu"}
    given = environment(worker["extraEnvVars"])
    [api] = {worker["selfHostedServerApiConfig"]["apiUrl"]} | {
        environment(PODS["worker"]["containers"][0]["env"])["PREFECT_API_URL"]
    }
    assert api == "http://prefect-server.mudg.svc.cluster.local:4200/api"
    name, space = CLUSTER["metadata"]["name"], CLUSTER["metadata"]["namespace"]
    address = f"tcp://{name}-scheduler.{space}.svc.cluster.local:8786"
    assert given["MUDG_COMPUTE__DASK_ADDRESS"] == address
    shown = load("kubernetes/prefect-server.yaml")["server"]["uiConfig"]["prefectUiApiUrl"]
    assert f"{given['PREFECT_UI_URL']}/api" == shown
    assert given["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "30"
    assert int(given["MUDG_COMPUTE__WORKERS"]) == CLUSTER["spec"]["worker"]["replicas"]


def test_no_secret_is_in_a_file() -> None:
    text = "".join(path.read_text() for path in (INFRA / "kubernetes").iterdir())
    assert "kind: Secret" not in text and "authString" not in text
    named = set(re.findall(r"(?:secretKeyRef|secretRef): \{name: ([\w-]+)", text))
    assert named == {"prefect-auth", "mudg-s3"}
