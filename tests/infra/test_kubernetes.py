"""Values for charts, and the cluster's own spec. Charts cannot be rendered here (no Helm), so their values
are compared with the names that the charts read, and pods that we write ourselves with Kubernetes' schema."""

from __future__ import annotations

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from mudg.ops.stack.prefect_setup import GPU_LIMIT
from tests.infra.charts import CHARTS, DASK_KUBERNETES
from tests.infra.files import INFRA, PROJECT, ROOT, check_environment, load

VERSION = "1.33"
CLUSTER = load("kubernetes/dask-cluster.yaml")
PODS = {"scheduler": CLUSTER["spec"]["scheduler"]["spec"], "worker": CLUSTER["spec"]["worker"]["spec"]}


def environment(entries: list[dict[str, Any]]) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "given") for entry in entries}


@pytest.mark.parametrize("chart", CHARTS)
def test_charts_read_every_value_that_we_set(chart: str) -> None:
    assert CHARTS[chart].ignored(load(f"kubernetes/{chart}.yaml")) == []


def test_values_that_nobody_would_read_are_noticed() -> None:
    wrong = {"server": {"replicas": 1, "podSecurityContext": {"runAsUsr": 1}, "env": [{"name": "A"}]}}
    assert CHARTS["prefect-server"].ignored(wrong) == [
        "server.replicas",
        "server.podSecurityContext.runAsUsr",
    ]
    migrations = {"migrations": {"enabled": True}}
    assert CHARTS["prefect-server"].ignored(migrations) == ["migrations.enabled"]
    apart = {"backgroundServices": {"runAsSeparateDeployment": True}}
    assert CHARTS["prefect-server"].ignored(migrations | apart) == []


def rendered(part: dict[str, Any], env: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod that both of Prefect's charts make of these values, as far as they hand them on as they are."""
    probes = {name: part[name]["config"] for name in ("livenessProbe", "readinessProbe") if name in part}
    container = {
        "name": "prefect",
        "env": env,
        "resources": part["resources"],
        "securityContext": part["containerSecurityContext"],
        "volumeMounts": part.get("extraVolumeMounts", []),
        **{name: {"httpGet": {"port": 1}} | probe for name, probe in probes.items()},
    }
    spec = {
        "containers": [container],
        "securityContext": part["podSecurityContext"],
        "volumes": part.get("extraVolumes", []),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "prefect"}, "spec": spec}


def test_what_charts_hand_on_is_of_kubernetes() -> None:
    server = load("kubernetes/prefect-server.yaml")
    worker = load("kubernetes/prefect-worker.yaml")["worker"]
    for pod in (
        rendered(server["server"], server["global"]["prefect"]["env"]),
        rendered(worker, worker["extraEnvVars"] + offered("kubernetes/prefect-worker.yaml")),
    ):
        kubernetes_validate.validate(pod, VERSION, strict=True)
        pod["spec"]["containers"][0]["resources"] = {"limit": {}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(pod, VERSION, strict=True)


def test_charts_are_installed_in_fixed_versions_and_waited_for() -> None:
    text = (INFRA / "README.md").read_text()
    installed = dict(re.findall(r"install ([\w-]+) .* --version ([\d.]+) .*--wait", text))
    assert installed == {name: chart.version for name, chart in CHARTS.items()}
    assert f"dask-kubernetes=={DASK_KUBERNETES}" in (INFRA / "docker/requirements-gpu.lock").read_text()


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


def test_the_store_may_be_any_s3() -> None:
    assert "MUDG_STORAGE__ENDPOINT_URL" in environment(offered("kubernetes/prefect-worker.yaml"))


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
    api = worker["selfHostedServerApiConfig"]["apiUrl"]
    assert api == "http://prefect-server.mudg.svc.cluster.local:4200/api"
    name, space = CLUSTER["metadata"]["name"], CLUSTER["metadata"]["namespace"]
    address = f"tcp://{name}-scheduler.{space}.svc.cluster.local:8786"
    assert given["MUDG_COMPUTE__DASK_ADDRESS"] == address
    shown = load("kubernetes/prefect-server.yaml")["server"]["uiConfig"]["prefectUiApiUrl"]
    assert f"{given['PREFECT_UI_URL']}/api" == shown
    server = load("kubernetes/prefect-server.yaml")["global"]["prefect"]["env"]
    assert environment(server)["PREFECT_SERVER_API_CORS_ALLOWED_ORIGINS"] == given["PREFECT_UI_URL"]
    assert given["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"] == "30"
    assert int(given["MUDG_COMPUTE__WORKERS"]) == CLUSTER["spec"]["worker"]["replicas"]


def test_pods_of_dask_have_no_way_to_the_prefect_server() -> None:
    """They run what flows send them, and need neither its address nor its password."""
    assert "PREFECT" not in (INFRA / "kubernetes/dask-cluster.yaml").read_text()


def test_no_secret_is_in_a_file() -> None:
    text = "".join(path.read_text() for path in (INFRA / "kubernetes").iterdir())
    assert "kind: Secret" not in text and "authString" not in text
    named = set(re.findall(r"(?:secretKeyRef|secretRef): \{name: ([\w-]+)", text))
    assert named == {"prefect-auth", "mudg-s3"}
