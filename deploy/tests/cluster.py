#!/usr/bin/env python3
"""Runs a coordinator and a worker on Redis and NATS as they are configured here, as the user `swirl` of
users.acl and of nats.conf, and one workflow on them. Prometheus scrapes them as it is configured here, and
evaluates the alerts. The tests of swirl-cli run this; by hand:

    cargo build --package swirl-cli && python3 deploy/tests/cluster.py target/debug/swirl
"""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import monitoring
import servers

HELLO = servers.DEPLOY.parent / "examples/hello/hello.sw.yaml"


def ready(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
        return answer.status == 200


def main(program):
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name in ("redis", "nats", "worker", "coordinator", "dev", "prometheus"):
            (folder / name).mkdir()
        users = folder / "users.acl"
        digest = hashlib.sha256(b"secret").hexdigest()
        users.write_text(servers.replaced("redis/users.acl", ("0" * 64, digest)))
        redis, _ = stack.enter_context(servers.redis(str(folder / "redis"), "--aclfile", str(users)))
        nats, http, api, health, dev = servers.free_ports(5)
        config = folder / "nats/nats.conf"
        config.write_text(servers.own(folder / "nats", nats, http))
        command = [servers.program("nats-server"), "-c", str(config)]
        stack.enter_context(servers.running(command, folder / "nats", servers.PASSWORDS))
        env = {
            "SWIRL_REDIS_URL": f"redis://127.0.0.1:{redis}",
            "SWIRL_REDIS_USERNAME": "swirl",
            "SWIRL_REDIS_PASSWORD": "secret",
            "SWIRL_NATS_URL": f"nats://127.0.0.1:{nats}",
            "SWIRL_NATS_USER": "swirl",
            "SWIRL_NATS_PASSWORD": "secret",
            "SWIRL_WORKER_LISTEN": f"127.0.0.1:{health}",
            "SWIRL_COORDINATOR_LISTEN": f"127.0.0.1:{api}",
            "SWIRL_AUTH_MODE": "off",
        }
        processes = []
        for role, port in [("coordinator", api), ("worker", health)]:
            process, log = stack.enter_context(servers.running([program, role], folder / role, env))
            processes.append((role, process))
            servers.until(f"{role} is ready", lambda port=port: ready(port), process, log)

        def swirl(*words):
            server = ["--server", f"http://127.0.0.1:{api}"]
            done = subprocess.run([program, *words, *server], capture_output=True, text=True, timeout=30)
            assert done.returncode == 0, f"swirl {words[0]}: {done.stderr}"
            return done.stdout

        print(swirl("deploy", str(HELLO)), end="")
        output = swirl("start", "hello", "--wait")
        assert "Hello" in output, output
        print(output, end="")
        accounts = servers.get(http, "/jsz?accounts=true&streams=true")["account_details"]
        streams = {stream["name"] for each in accounts for stream in each.get("stream_detail", [])}
        wanted = {f"SWIRL_default_{name}" for name in ("TASKS", "LANES", "JOINS", "EVENTS", "DEAD")}
        assert streams == wanted, f"the streams are {streams}"
        monitored(stack, folder, program, processes, {"coordinator": api, "worker": health, "dev": dev})
        for role, process in reversed(processes):
            if process.poll() is None:
                stop(role, process)
    print("ok")


def stop(role, process):
    begun = time.monotonic()
    process.terminate()
    assert process.wait(30) == 0, f"{role} ended with {process.returncode}"
    print(f"{role} stopped in {time.monotonic() - begun:.2f} s")


def monitored(stack, folder, program, processes, ports):
    """What Prometheus sees of a coordinator, a worker and `swirl dev`; and that it sees when one is gone."""
    command = [program, "dev", str(folder / "dev"), "--memory", "--listen", f"127.0.0.1:{ports['dev']}"]
    dev, log = stack.enter_context(servers.running(command, folder / "dev"))
    servers.until("swirl dev is ready", lambda: ready(ports["dev"]), dev, log)
    try:
        monitoring.checked_by_promtool(ports)
        print("promtool accepts the metrics of", ", ".join(ports))
        asked = stack.enter_context(monitoring.prometheus(folder / "prometheus", ports))
    except servers.LeftOut as reason:
        print(f"left out: metrics and alerts: {reason}")
        return
    monitoring.scraped(asked)
    print("Prometheus scrapes", ", ".join(ports))
    stop(*processes.pop())
    gone = {"SwirlNoWorker", "SwirlProcessDown"}
    servers.until("alerts of a worker that is gone", lambda: asked.alerts() == gone)
    print("Prometheus misses the worker:", ", ".join(sorted(gone)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: cluster.py PROGRAM")
    main(sys.argv[1])
