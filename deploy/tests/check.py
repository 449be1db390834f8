#!/usr/bin/env python3
"""Checks what can be checked of `deploy/` without containers or a cluster: files can be read, names of
settings, metrics and files fit each other, and redis-server and nats-server run with the configurations
that are shipped. Needs Python 3.11, PyYAML (Debian: python3-yaml), redis-server and nats-server. What needs
promtool, systemd-analyze or Go is left out, by name, where these are missing."""

import os
import sys

try:
    import yaml
except ImportError:
    # A Python of the user's own may lack it; Debian's has python3-yaml.
    if os.path.exists("/usr/bin/python3") and not os.environ.get("SWIRL_CHECK_AGAIN"):
        os.execve("/usr/bin/python3", ["python3", *sys.argv], {**os.environ, "SWIRL_CHECK_AGAIN": "1"})
    sys.exit("error: PyYAML is missing: apt-get install python3-yaml")

import json
import re
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path

import chart
import servers

DEPLOY = servers.DEPLOY
ROOT = DEPLOY.parent
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def text(path):
    return (ROOT / path).read_text()


def settings():
    """Each setting with its default, from the reference that is made from the program's table."""
    rows = re.findall(r"^\| `([a-z_.]+)` \| [^|]* \| (?:`([^`]*)`)? *\|", text("docs/configuration.md"), re.M)
    assert len(rows) > 60, "docs/configuration.md cannot be read"
    return {key: default.strip('"') for key, default in rows}


def variable(key):
    return "SWIRL_" + key.upper().replace(".", "_")


def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key


def seconds(time):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", time).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def size(bytes_):
    number, unit = re.fullmatch(r"(\d+)(\w+)", bytes_).groups()
    return int(number) * UNITS[unit]


# --- Files


def files_can_be_read():
    count = 0
    for path in DEPLOY.rglob("*"):
        if "templates" in path.parts or not path.is_file():
            continue
        if path.suffix in (".yaml", ".yml"):
            list(yaml.safe_load_all(path.read_text()))
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".toml":
            tomllib.loads(path.read_text())
        else:
            continue
        count += 1
    assert count > 7, f"only {count} files were found"


def variables_are_settings():
    known = {variable(key) for key in settings()} | {"SWIRL_CONFIG", "SWIRL_IMAGE"}
    found = set()
    for path in DEPLOY.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            found |= {(name, path) for name in re.findall(r"\bSWIRL_[A-Z_]+\b", path.read_text())}
    wrong = [f"{path.relative_to(ROOT)}: {name}" for name, path in sorted(found) if name not in known]
    assert not wrong, f"no settings: {wrong}"
    assert len(found) > 10


def example_configuration():
    known = settings()
    example = tomllib.loads((DEPLOY / "systemd/examples/swirl.toml").read_text())
    wrong = [key for key in flat(example) if key not in known]
    assert not wrong, f"no settings: {wrong}"


def toolchain_is_the_same():
    channel = tomllib.loads(text("rust-toolchain.toml"))["toolchain"]["channel"]
    docker = (DEPLOY / "Dockerfile").read_text()
    assert f"rust:{channel}-" in docker and f"RUSTUP_TOOLCHAIN={channel} " in docker, channel


def image_has_the_whole_workspace():
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    members = tomllib.loads(text("Cargo.toml"))["workspace"]["members"]
    missing = [member for member in members if f"!{member.split('/')[0]}" not in ignore]
    assert not missing, f"Dockerfile.dockerignore leaves out {missing}"


# --- Compose


def compose():
    file = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    services = file["services"]
    for name, service in services.items():
        image = service.get("image", "")
        assert ":" in image and not image.endswith(":latest"), f"{name}: no tag"
        limits = service["deploy"]["resources"]["limits"]
        assert "memory" in limits and "cpus" in limits, f"{name}: no limits"
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services[needed], f"{name}: {needed}"
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            there = (DEPLOY / source).exists() if source.startswith(".") else source in file["volumes"]
            assert there, f"{name}: {source}"
        for config in service.get("configs", []):
            assert (DEPLOY / file["configs"][config["source"]]["file"]).is_file(), f"{name}: {config}"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name}: {port} is open to everybody"
    asked = set(re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text()))
    given = set(re.findall(r"^([A-Z_]+)=", (DEPLOY / ".env.example").read_text(), re.M))
    assert asked == given, f"compose.yaml asks for {asked}, .env.example has {given}"
    for process in ("worker", "coordinator"):
        deadline = seconds(settings()[f"{process}.shutdown_deadline"])
        assert seconds(services[process]["stop_grace_period"]) > deadline, process


def units_stop_late_enough():
    for process, file in [("worker", "swirl-worker@.service"), ("coordinator", "swirl-coordinator.service")]:
        unit = (DEPLOY / "systemd" / file).read_text()
        stop = re.search(r"^TimeoutStopSec=(\w+)$", unit, re.M).group(1)
        assert seconds(stop) > seconds(settings()[f"{process}.shutdown_deadline"]), file


def units_can_be_loaded():
    """By systemd itself, with a program in the place of theirs."""
    verify = servers.optional("systemd-analyze", "systemd")
    with tempfile.TemporaryDirectory() as folder:
        units = []
        for file in sorted((DEPLOY / "systemd").glob("*.service")):
            unit = Path(folder) / file.name.replace("@.", "@1.")
            unit.write_text(file.read_text().replace("/usr/local/bin/swirl", "/bin/true"))
            units.append(str(unit))
        assert len(units) == 2, units
        # It complains of other units of the machine, too.
        done = subprocess.run([verify, "--man=no", "verify", *units], capture_output=True, text=True, timeout=60)
        ours = [line for line in done.stderr.splitlines() if "swirl" in line]
        assert done.returncode == 0 and not ours, done.stderr


# --- Chart

CHART = DEPLOY / "helm/swirl"


def pairs(values, schema, place=""):
    """Where values.yaml and values.schema.json differ."""
    properties = schema.get("properties")
    if not isinstance(values, dict) or not properties or schema.get("additionalProperties") is not False:
        return
    for key in values.keys() ^ (properties.keys() - {"global"}):
        yield f"{place}{key} is in one of values.yaml and values.schema.json only"
    for key in values.keys() & properties.keys():
        yield from pairs(values[key], properties[key], f"{place}{key}.")


def names_of(values, prefix=""):
    for key, value in values.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from names_of(value, f"{prefix}{key}.")


def chart_values():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    wrong = list(pairs(values, json.loads((CHART / "values.schema.json").read_text())))
    assert not wrong, wrong
    known = set(names_of(values))
    # Optional parts of Swirl's own configuration need no default.
    known |= {"config.auth"}
    for path in (CHART / "templates").iterdir():
        template = path.read_text()
        assert template.count("{{") == template.count("}}"), path.name
        begun = len(re.findall(r"\{\{-? *(?:if|with|range|define) ", template))
        assert begun == len(re.findall(r"\{\{-? *end *-?\}\}", template)), f"{path.name}: an 'end' too few or too many"
        for name in re.findall(r"\.Values\.([A-Za-z.]+)", template):
            assert name in known, f"{path.name}: values.yaml has no {name}"
    config = set(flat(values["config"]))
    assert config <= settings().keys(), f"no settings: {config - settings().keys()}"


def chart_version():
    version = tomllib.loads(text("Cargo.toml"))["workspace"]["package"]["version"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == version, f"Chart.yaml has appVersion {chart['appVersion']}, the workspace {version}"


def chart_secrets():
    """Both processes find secrets of workflows: workers those of calls, coordinators those of documents."""
    for process in ("worker", "coordinator"):
        template = (CHART / f"templates/{process}.yaml").read_text()
        value = f".Values.{process}.secretsSecretName"
        blocks = re.findall(rf"\{{\{{- if {re.escape(value)} \}}\}}\n(.*?)\{{\{{- end \}}\}}", template, re.S)
        # None of them has an action but the secret's name.
        blocks = [yaml.safe_load(block.replace(f"{{{{ {value} }}}}", "given")) for block in blocks]
        assert blocks == [
            [{"name": "SWIRL_SECRETS_FOLDERS", "value": "/etc/swirl/secrets"}],
            [{"name": "secrets", "mountPath": "/etc/swirl/secrets", "readOnly": True}],
            [{"name": "secrets", "secret": {"secretName": "given", "defaultMode": 0o440}}],
        ], f"{process}: {blocks}"


def chart_renders():
    chart.renders({variable(key) for key in settings()})


def chart_deadlines():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for process in ("worker", "coordinator"):
        default = seconds(settings()[f"{process}.shutdown_deadline"])
        assert values[process]["shutdownDeadlineSeconds"] == default, process
        template = (CHART / f"templates/{process}.yaml").read_text()
        grace = re.search(r"terminationGracePeriodSeconds: (.*)", template).group(1)
        assert f".Values.{process}.shutdownDeadlineSeconds" in grace and grace.split()[-2] == "10", grace


# --- Metrics


def metrics_have_one_list():
    names = json.loads((DEPLOY / "prometheus/metrics.json").read_text())
    listed = {*names["metrics"], *names["labels"]}
    used = set()
    for file in ("prometheus/alerts.yml", "grafana/dashboards/swirl.json"):
        names = re.findall(r"\b(?:swirl|process|http)_[a-z_]+\b", (DEPLOY / file).read_text())
        used |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
    assert used == listed, f"not in metrics.json: {used - listed}; not used: {listed - used}"
    page = ROOT / "docs/telemetry.md"
    if page.exists():
        # It may call them by OpenTelemetry's names, with dots and without the unit.
        said = page.read_text().replace(".", "_")
        missing = [name for name in sorted(listed) if re.sub(r"(_seconds)?(_total)?$", "", name) not in said]
        assert not missing, f"docs/telemetry.md has no {missing}"


def alerts():
    """Each of them fires when it should, and none in good health; Prometheus reads its configuration."""
    rules = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    names = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    cases = yaml.safe_load((DEPLOY / "tests/alerts.test.yml").read_text())
    samples = [sample for case in cases["tests"] for test in case["promql_expr_test"] for sample in test["exp_samples"]]
    fired = {re.search(r'alertname="(\w+)"', sample["labels"]).group(1) for sample in samples}
    assert fired == names, f"without a case: {names - fired}; no alert: {fired - names}"
    explained = set(re.findall(r"\bSwirl[A-Z]\w+", text("docs/operating.md")))
    assert explained == names, f"not in docs/operating.md: {names - explained}; no alert: {explained - names}"
    promtool = servers.optional("promtool", "prometheus")
    for words in [("check", "config", "prometheus/prometheus.yml"), ("test", "rules", "tests/alerts.test.yml")]:
        done = subprocess.run([promtool, *words], cwd=DEPLOY, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


def dashboard():
    board = json.loads((DEPLOY / "grafana/dashboards/swirl.json").read_text())
    source = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text())
    known = {each["uid"] for each in source["datasources"]}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)) > 10
    for panel in board["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24, panel["title"]
        for target in panel.get("targets", []):
            assert target["datasource"]["uid"] in known and target["expr"], panel["title"]


# --- Servers


def nats_single():
    known = settings()
    servers.nats_single({
        "TASKS": size(known["nats.tasks_bytes_max"]),
        "EVENTS": size(known["nats.events_bytes_max"]),
        "DEAD": size("1GiB"),
    })


CHECKS = [
    files_can_be_read,
    variables_are_settings,
    example_configuration,
    toolchain_is_the_same,
    image_has_the_whole_workspace,
    compose,
    units_stop_late_enough,
    units_can_be_loaded,
    chart_values,
    chart_version,
    chart_secrets,
    chart_deadlines,
    chart_renders,
    metrics_have_one_list,
    alerts,
    dashboard,
    servers.redis_is_durable,
    servers.redis_users,
    nats_single,
    servers.nats_cluster,
]


def main():
    failed = left_out = 0
    for check in CHECKS:
        begun = time.monotonic()
        try:
            check()
            result = "ok"
        except servers.LeftOut as reason:
            left_out += 1
            result = f"left out: {reason}"
        except Exception as error:  # noqa: BLE001: any error is a check that has failed
            failed += 1
            result = f"FAILED: {type(error).__name__}: {error}"
        print(f"{check.__name__} ({time.monotonic() - begun:.1f} s): {result}", flush=True)
    print(f"{len(CHECKS) - failed - left_out} passed, {failed} failed, {left_out} left out")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
