"""The real Prometheus, with the configuration and the alerts that are shipped, on processes that run."""

import contextlib
import json
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import servers

# The group of alerts that need no exporter.
SWIRL = "swirl"
# They come with a collector, the first call of a function, the first timer, and lifecycle events.
LATER = {
    "swirl_export_failures_total",
    "swirl_call_duration_seconds",
    "swirl_timer_lateness_seconds",
    "swirl_lifecycle_lag_seconds",
    "swirl_lifecycle_lost_total",
    "swirl_lifecycle_unread",
}


def text(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read()


def checked_by_promtool(ports):
    """Each process' metrics, by `promtool check metrics`. `ports`: by the process' name."""
    promtool = servers.optional("promtool", "prometheus")
    for name, port in ports.items():
        done = subprocess.run([promtool, "check", "metrics"], input=text(port), capture_output=True, timeout=30)
        assert done.returncode == 0, f"{name}: {done.stderr.decode()}"


class Prometheus:
    def __init__(self, port):
        self.port = port

    def ask(self, path, **query):
        answer = servers.get(self.port, f"/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert answer["status"] == "success", answer
        return answer["data"]

    def values(self, query):
        """The samples of a query, each with its labels."""
        found = self.ask("query", query=query)["result"]
        return [(sample["metric"], float(sample["value"][1])) for sample in found]

    def targets(self):
        """By job: an error of the last scrape, empty if there was none, or nothing if none was made."""
        found = self.ask("targets", state="active")["activeTargets"]
        scraped = [each for each in found if not each["lastScrape"].startswith("0001")]
        return {each["labels"]["job"]: each["lastError"] for each in scraped}

    def alerts(self):
        """The alerts of the group `swirl` that wait or fire."""
        groups = self.ask("rules", type="alert")["groups"]
        rules = [rule for group in groups if group["name"] == SWIRL for rule in group["rules"]]
        assert len(rules) > 10, rules
        return {rule["name"] for rule in rules if rule["state"] != "inactive"}


@contextlib.contextmanager
def prometheus(folder, ports):
    """Scrapes the jobs on these ports each second."""
    program = servers.optional("prometheus", "prometheus")
    own = [
        ("scrape_interval: 15s", "scrape_interval: 1s"),
        ("evaluation_interval: 15s", "evaluation_interval: 1s"),
        ("scrape_timeout: 5s", "scrape_timeout: 1s"),
        ("  - alerts.yml", f"  - {servers.DEPLOY}/prometheus/alerts.yml"),
    ]
    for name, port, default in [
        ("coordinator", ports["coordinator"], 8080),
        ("worker", ports["worker"], 8081),
    ]:
        found = f"dns_sd_configs:\n      - {{ names: [{name}], type: A, port: {default}, refresh_interval: 10s }}"
        own.append((found, f'static_configs:\n      - targets: ["127.0.0.1:{port}"]'))
    config = Path(folder) / "prometheus.yml"
    shipped = servers.replaced("prometheus/prometheus.yml", *own)
    shipped += f'\n  - job_name: swirl-dev\n    static_configs:\n      - targets: ["127.0.0.1:{ports["dev"]}"]\n'
    config.write_text(shipped)
    port = servers.free_ports(1)[0]
    command = [program, f"--config.file={config}", f"--storage.tsdb.path={folder}/data"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with servers.running(command, folder) as (process, log):
        asked = Prometheus(port)
        servers.until("Prometheus", lambda: asked.ask("status/runtimeinfo"), process, log)
        yield asked


def scraped(asked):
    """Every process is scraped without an error, and no alert of Swirl's own waits."""
    jobs = {"swirl-coordinator", "swirl-worker", "swirl-dev"}

    def all_are():
        errors = {job: error for job, error in asked.targets().items() if job in jobs}
        assert not any(errors.values()), errors
        up = {labels["job"] for labels, value in asked.values('up{job=~"swirl-.*"}') if value == 1}
        return jobs == up == errors.keys()

    servers.until("every process is scraped", all_are)
    listed = json.loads((servers.DEPLOY / "prometheus/metrics.json").read_text())["metrics"]

    def all_there():
        found = {labels["__name__"] for labels, _ in asked.values('count by (__name__) ({__name__=~"(swirl|process|http)_.+"})')}
        found = {name.removesuffix(end) for name in found for end in ("", "_bucket", "_sum", "_count")}
        missing = listed.keys() - found - LATER
        assert not missing, f"not scraped: {missing}"
        return True

    servers.until("every metric is scraped", all_there)
    servers.until("no alert", lambda: not asked.alerts())
