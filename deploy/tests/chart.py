"""The Helm chart, rendered with Go's templates and sprig (Debian: golang-go, golang-github-masterminds-sprig-dev,
golang-k8s-sigs-yaml-dev), and what Kubernetes would refuse of it."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import servers
import yaml

CHART = servers.DEPLOY / "helm/swirl"
LIBRARIES = Path("/usr/share/gocode/src")
SPRIG = LIBRARIES / "github.com/Masterminds/sprig"
BUILD_MAX_S = 300

LEAST = {"image": {"repository": "registry.example.org/swirl"}, "auth": {"tokensSecret": {"name": "tokens"}}}
SECRET = {"secretName": "some", "clientCertificate": True}
POD = {
    "secretsSecretName": "secrets",
    "env": [{"name": "SWIRL_LOG_FILTER", "value": "debug"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "c"},
    "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "only", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "priorityClassName": "high",
}
MOST = {
    "image": {"repository": "registry.example.org/swirl", "digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "redis": {"passwordSecret": {"name": "redis"}, "tls": SECRET},
    "nats": {"passwordSecret": {"name": "nats"}, "credentialsSecret": {"name": "creds"}, "tls": SECRET},
    "auth": {"mode": "on", "tokensSecret": {"name": "tokens"}},
    "coordinator": {**POD, "tlsSecretName": "tls", "allowedHosts": ["swirl.example.org"]},
    "worker": {**POD, "autoscaling": {"enabled": True}},
    "ingress": {
        "enabled": True,
        "className": "nginx",
        "annotations": {"a": "b"},
        "hosts": [{"host": "swirl.example.org", "path": "/", "pathType": "Prefix"}],
        "tls": [{"secretName": "swirl-tls", "hosts": ["swirl.example.org"]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"enabled": True},
    "egressPolicy": {
        "except": ["10.0.0.0/8"],
        "except6": ["fd00::/8"],
        "also": [{"to": [{"podSelector": {"matchLabels": {"app": "redis"}}}]}],
    },
}
KEDA = {**LEAST, "worker": {"keda": {"enabled": True, "monitoringEndpoint": "nats.messaging.svc:8222"}}}
OFF = {
    **LEAST,
    "auth": {"mode": "off"},
    "egressPolicy": {"enabled": False},
    "serviceAccount": {"create": False},
    "service": {"sessionAffinity": "None"},
}


def renderer(folder):
    go = servers.optional("go", "golang-go")
    if not SPRIG.is_dir() or not (LIBRARIES / "sigs.k8s.io/yaml").is_dir():
        packages = "golang-github-masterminds-sprig-dev golang-k8s-sigs-yaml-dev"
        if os.environ.get("CI"):
            raise AssertionError(f"apt-get install {packages}: a CI server runs every check")
        raise servers.LeftOut(f"Go's libraries of the chart's functions are missing (apt-get install {packages})")
    program = Path(folder) / "render"
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": str(LIBRARIES.parent), "GOFLAGS": "", "GOCACHE": f"{folder}/cache"}
    source = Path(__file__).parent / "render/main.go"
    done = subprocess.run(
        [go, "build", "-o", program, source], env=env, capture_output=True, text=True, timeout=BUILD_MAX_S
    )
    assert done.returncode == 0, done.stderr
    return program


def rendered(program, values):
    """By kind and name; an error of the chart is raised."""
    words = [program, CHART, "demo"]
    done = subprocess.run(words, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise ValueError(done.stderr)
    objects = {}
    for part in re.split(r"^# Source: ", done.stdout, flags=re.M)[1:]:
        name, text = part.split("\n", 1)
        if name == "NOTES.txt":
            assert "map[" not in text and "%!" not in text, text
            continue
        for document in yaml.safe_load_all(text):
            if document is None:
                continue
            key = (document["kind"], document["metadata"]["name"])
            assert key not in objects, f"twice: {key}"
            objects[key] = document
    return objects


def object_is_sound(document):
    name = document["metadata"]["name"]
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name) and len(name) <= 63, name
    for key, value in document["metadata"].get("labels", {}).items():
        assert isinstance(value, str) and len(value) <= 63, f"{name}: label {key}: {value!r}"
    text = yaml.safe_dump(document)
    assert "map[" not in text and "<nil>" not in text and "%!" not in text, f"{name}: a value is written as Go does"


def pods_are_sound(document, known):
    name = document["metadata"]["name"]
    spec, selector = document["spec"]["template"]["spec"], document["spec"]["selector"]["matchLabels"]
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert selector.items() <= labels.items(), f"{name}: the selector doesn't fit its pods"
    volumes = [volume["name"] for volume in spec["volumes"]]
    assert len(set(volumes)) == len(volumes), f"{name}: {volumes}"
    for container in spec["containers"]:
        mounts = [mount["name"] for mount in container["volumeMounts"]]
        assert set(mounts) == set(volumes), f"{name}: mounts {mounts}, volumes {volumes}"
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert len(set(paths)) == len(paths), f"{name}: {paths}"
        variables = [each["name"] for each in container["env"]]
        assert len(set(variables)) == len(variables), f"{name}: {variables}"
        unknown = [each for each in variables if each not in known and each != "SWIRL_CONFIG"]
        assert not unknown, f"{name}: no settings: {unknown}"
        for each in container["env"]:
            assert isinstance(each.get("value", ""), str), f"{name}: {each['name']} isn't a string"
            path = str(each.get("value", ""))
            if path.startswith("/etc/swirl/"):
                assert any(path == at or path.startswith(f"{at}/") for at in paths), f"{name}: nothing at {path}"


def keeps_visitors(spec, values):
    """A visitor of the console stays with the coordinator that has the session."""
    affinity = values.get("service", {}).get("sessionAffinity", "ClientIP")
    config = {"clientIP": {"timeoutSeconds": 10800}} if affinity == "ClientIP" else None
    assert spec["sessionAffinity"] == affinity and spec.get("sessionAffinityConfig") == config, spec


def renders(known):
    """`known`: variables of the environment that Swirl reads."""
    with tempfile.TemporaryDirectory() as folder:
        program = renderer(folder)
        for values in [LEAST, MOST, KEDA, OFF]:
            objects = rendered(program, values)
            for (kind, _), document in objects.items():
                object_is_sound(document)
                if kind == "Deployment":
                    pods_are_sound(document, known)
            kinds = {kind for kind, _ in objects}
            assert {"ConfigMap", "Deployment", "Service", "PodDisruptionBudget"} <= kinds, kinds
            assert ("HorizontalPodAutoscaler" in kinds) == (values is MOST), kinds
            assert ("ScaledObject" in kinds) == (values is KEDA), kinds
            assert ("Ingress" in kinds and "ServiceMonitor" in kinds) == (values is MOST), kinds
            assert ("NetworkPolicy" in kinds) == (values is not OFF), kinds
            keeps_visitors(objects["Service", "demo-swirl"]["spec"], values)
            for service in (document for (kind, _), document in objects.items() if kind == "Service"):
                pods = [d["spec"]["template"]["metadata"]["labels"] for (k, _), d in objects.items() if k == "Deployment"]
                assert any(service["spec"]["selector"].items() <= labels.items() for labels in pods), service
        both = {"worker": {**KEDA["worker"], "autoscaling": {"enabled": True}}}
        nowhere = {"worker": {"keda": {"enabled": True}}}
        for wrong in [both, nowhere]:
            try:
                rendered(program, {**LEAST, **wrong})
            except ValueError:
                continue
            raise AssertionError(f"not refused: {wrong}")
