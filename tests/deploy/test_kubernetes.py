"""The manifests are what Kubernetes takes, and hold together: names, secrets, grace, and the metric that KEDA asks for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

import taskyard
from taskyard.core import metrics
from taskyard.doors.cli import parser, verbs

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
MANIFESTS = {
    (each["kind"], each["metadata"]["name"]): each
    for file in sorted(FOLDER.glob("*.yaml"))
    for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
}
KEDA = "keda.sh/v1alpha1"
KUBERNETES = [pytest.param(each, id=" ".join(key)) for key, each in MANIFESTS.items() if each["apiVersion"] != KEDA]
WORKER = MANIFESTS["Deployment", "taskyard-worker"]["spec"]["template"]["spec"]
GATEWAY = MANIFESTS["Deployment", "taskyard-gateway"]["spec"]["template"]["spec"]
PODS = [pytest.param(WORKER, id="worker"), pytest.param(GATEWAY, id="gateway")]
SCALED = MANIFESTS["ScaledObject", "taskyard-worker"]


@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize("manifest", KUBERNETES)
def test_the_schemas_of_kubernetes_take_it(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)  # raises on anything that is unknown or missing


def test_a_manifest_with_a_mistake_is_found() -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "Service", "spec": {"prots": []}}, "1.37", strict=True
        )


@pytest.mark.parametrize("pod", PODS)
def test_every_container_is_confined_and_has_limits(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsGroup"] == 0
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        context = container["securityContext"]
        assert (context["readOnlyRootFilesystem"], context["allowPrivilegeEscalation"]) == (True, False)
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        assert container["env"] == [{"name": "TASKYARD_FILE", "value": "/secrets/yard"}]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes


@pytest.mark.parametrize("pod", PODS)
def test_every_command_is_a_command_of_taskyard(pod: dict[str, Any]) -> None:
    probes = [probe["exec"]["command"] for each in pod["containers"] if "exec" in (probe := each["livenessProbe"])]
    for words in [*(container["command"] for container in pod["containers"]), *probes]:
        assert words[0] == "taskyard"
        before, verb, after = parser.split(words[1:])
        assert verb is not None
        parser.parse(verbs.called(verb), verbs.command(verb), [*before, *after])


def test_the_worker_ends_within_the_time_that_its_pod_has() -> None:
    (worker,) = WORKER["containers"]
    grace = int(worker["command"][worker["command"].index("--grace") + 1])
    assert WORKER["terminationGracePeriodSeconds"] >= grace + 15
    alive = worker["command"][worker["command"].index("--alive") + 1]
    assert worker["livenessProbe"]["exec"]["command"][1:3] == ["alive", alive]


def test_the_service_leads_to_the_gateway() -> None:
    service = MANIFESTS["Service", "taskyard-gateway"]["spec"]
    labels = MANIFESTS["Deployment", "taskyard-gateway"]["spec"]["template"]["metadata"]["labels"]
    (gateway,) = GATEWAY["containers"]
    assert service["selector"] == labels
    assert service["ports"][0]["targetPort"] == gateway["ports"][0]["name"]
    assert MANIFESTS["PodDisruptionBudget", "taskyard-gateway"]["spec"]["selector"]["matchLabels"] == labels


def test_keda_s_objects_have_the_fields_that_keda_knows() -> None:
    assert set(SCALED["spec"]) == {
        *("scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount", "triggers")
    }
    (trigger,) = SCALED["spec"]["triggers"]
    assert set(trigger) == {"type", "metricType", "metadata", "authenticationRef"}
    assert trigger["type"] == "metrics-api"
    assert set(trigger["metadata"]) == {"url", "format", "valueLocation", "targetValue", "authMode"}
    assert all(isinstance(value, str) for value in trigger["metadata"].values()), "KEDA takes texts alone"
    secrets = MANIFESTS["TriggerAuthentication", trigger["authenticationRef"]["name"]]["spec"]["secretTargetRef"]
    assert [set(secret) for secret in secrets] == [{"parameter", "name", "key"}]
    assert secrets[0]["parameter"] == "token"  # which the mode `bearer` sends
    assert trigger["metadata"]["authMode"] == "bearer"


def test_keda_scales_the_workers_by_what_is_ready_and_what_is_processed() -> None:
    (trigger,) = SCALED["spec"]["triggers"]
    assert MANIFESTS["Deployment", SCALED["spec"]["scaleTargetRef"]["name"]]["kind"] == "Deployment"
    url = urlsplit(trigger["metadata"]["url"])
    assert (url.port, url.path) == (8377, "/metrics")
    (gateway,) = GATEWAY["containers"]
    assert url.hostname in gateway["command"], "a gateway refuses requests by a name that it is not known by"
    with taskyard.init("memory:keda") as yard:
        yard.add_many([{"kind": "build"} for _ in range(3)])
        assert yard.claim() is not None
        text = metrics.prometheus(yard.stats())
    found = re.search(rf"^{trigger['metadata']['valueLocation']} (\d+)$", text, re.MULTILINE)
    assert found is not None
    assert int(found[1]) == 3
