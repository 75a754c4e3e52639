"""The names of values that Helm charts read, as their makers list them: all in the areas that we set, and not
only ours. Helm ignores most names that a chart does not know: a mistake would change nothing, silently."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.infra.files import leaves

RESOURCES = " ".join(
    f"resources.{kind}.{name}"
    for kind in ("requests", "limits")
    for name in ("cpu", "memory", "ephemeral-storage")
)
PROBE = "initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold"
SECURITY = "runAsUser runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation capabilities"
POD_SECURITY = "runAsUser runAsNonRoot fsGroup seccompProfile.type seccompProfile.localhostProfile"
SCHEDULING = "priorityClassName podLabels podAnnotations affinity nodeSelector tolerations"
EXTRA = "extraContainers extraVolumes extraVolumeMounts extraArgs extraEnvVarsCM extraEnvVarsSecret"
NAMES = "nameOverride fullnameOverride namespaceOverride commonLabels commonAnnotations"


@dataclass(frozen=True)
class Chart:
    """`names` by the area they are in; what lies below a name is free, as lists and labels are. An area in
    `only_with` is read only if the value that it names is true."""

    version: str
    names: dict[str, str]
    only_with: dict[str, str] = field(default_factory=dict)

    def paths(self) -> set[str]:
        return {f"{area}.{name}".strip(".") for area, many in self.names.items() for name in many.split()}

    def ignored(self, values: dict[str, Any]) -> list[str]:
        """Paths of values that would have no effect."""
        return [path for path, _ in leaves(values) if not self._reads(path, values)]

    def _reads(self, path: str, values: dict[str, Any]) -> bool:
        if not any(one in self.paths() for one in _and_above(path)):
            return False
        switches = [self.only_with[one] for one in _and_above(path) if one in self.only_with]
        given = dict(leaves(values))
        return all(given.get(switch) is True for switch in switches)


def _and_above(path: str) -> Iterator[str]:
    words = path.split(".")
    for end in range(len(words), 0, -1):
        yield ".".join(words[:end])


# The versions that infra/README.md installs. Names are those of github.com/PrefectHQ/prefect-helm in autumn
# 2025 (values.yaml, values.schema.json and README.md of both charts; the switch of `migrations` begins
# templates/pre-upgrade-hook.yaml), and of the chart that comes with the Python package dask-kubernetes.
PREFECT = "2026.9.3212605"
DASK_KUBERNETES = "2026.3.0"

CHARTS = {
    "prefect-server": Chart(
        PREFECT,
        {
            "": f"{NAMES} ingress gateway httproute sqlite postgresql redis backgroundServices migrations",
            "global.prefect": "image.repository image.prefectTag image.pullPolicy image.pullSecrets env",
            "server": "basicAuth.enabled basicAuth.authString basicAuth.existingSecret apiBasePath debug "
            "loggingLevel uiConfig.prefectUiApiUrl uiConfig.prefectUiStaticDirectory env args command "
            "revisionHistoryLimit autoscaling replicaCount livenessProbe.enabled readinessProbe.enabled "
            f"updateStrategy {SCHEDULING} {EXTRA} {RESOURCES}",
            "server.livenessProbe.config": PROBE,
            "server.readinessProbe.config": PROBE,
            "server.podSecurityContext": POD_SECURITY,
            "server.containerSecurityContext": SECURITY,
            "serviceAccount": "create name annotations",
            "service": "port targetPort nodePort extraPorts type clusterIP externalTrafficPolicy annotations",
            "secret": "create name username password host port database",
        },
        {"migrations": "backgroundServices.runAsSeparateDeployment"},
    ),
    "prefect-worker": Chart(
        PREFECT,
        {
            "": NAMES,
            "worker": "apiConfig clusterUid autoscaling cloudApiConfig selfManagedCloudApiConfig "
            "selfHostedServerApiConfig.apiUrl selfHostedServerApiConfig.basicAuth initContainer "
            "image.repository image.prefectTag image.pullPolicy image.pullSecrets image.debug replicaCount "
            "revisionHistoryLimit livenessProbe.enabled dnsConfig dnsPolicy extraEnvVars extraEnvVarsCMs "
            f"extraEnvVarsSecrets {SCHEDULING} {EXTRA} {RESOURCES}",
            "worker.config": "workPool workQueues queryInterval prefetchSeconds http2 type installPolicy "
            "name limit baseJobTemplate",
            "worker.livenessProbe.config": PROBE,
            "worker.podSecurityContext": POD_SECURITY,
            "worker.containerSecurityContext": SECURITY,
            "serviceAccount": "create name annotations",
            "role": "create extraPermissions",
            "rolebinding": "create",
        },
    ),
    "dask-operator": Chart(
        DASK_KUBERNETES,
        {
            "": "imagePullSecrets nameOverride fullnameOverride podAnnotations podSecurityContext kopfArgs "
            "securityContext resources volumes volumeMounts extraEnv nodeSelector tolerations affinity "
            "priorityClassName metrics livenessProbe.timeoutSeconds workerAllocation",
            "image": "name tag pullPolicy",
            "serviceAccount": "create annotations name",
            "rbac": "create cluster",
        },
    ),
}
