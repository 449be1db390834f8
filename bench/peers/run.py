#!/usr/bin/env python3
"""Ten HTTP calls in `swirl dev` and in Restate, by turns in the same run.

Fetches Restate's server from npm and its SDK from crates.io, builds the service in `restate/`, starts both, and
measures them with `swirl-bench`. Needs npm and cargo. Nothing of it is part of the tests.
"""

import argparse
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SERVER = "1.7.12"
READY_MAX = 60
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--quick", action="store_true", help="one second a row, once")
    args.add_argument("--report", type=pathlib.Path, help="the file of the report")
    args.add_argument("--swirl", type=pathlib.Path, help="the binary to measure; by default it is built")
    args = args.parse_args()
    work = ROOT / "target" / "peers"
    work.mkdir(parents=True, exist_ok=True)
    server = fetch(work)
    service = build(HERE / "restate", work / "restate", "restate-steps", profile="release")
    packages = ["-p", "swirl-bench", "-p", "swirl-cli", "-p", "swirl-chaos"]
    bench = build(ROOT, ROOT / "target", "swirl-bench", *packages, profile="dist")
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(4)
        running = []
        try:
            running.append(subprocess.Popen([service, f"127.0.0.1:{ports[0]}"]))
            running.append(start(server, folder, ports))
            register(ports)
            command = [bench, "--peer", f"Restate {SERVER}=http://127.0.0.1:{ports[1]}/Steps/run"]
            for name, process in zip(["its service", "restate-server"], running):
                command += ["--peer-process", f"{name}={process.pid}"]
            command += ["--quick"] if args.quick else []
            command += ["--report", args.report.resolve()] if args.report else []
            command += ["--swirl", args.swirl.resolve()] if args.swirl else []
            return subprocess.run(command, check=False).returncode
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait(timeout=READY_MAX)


def fetch(work):
    """The server's binary: the package for this platform is an optional dependency of the other."""
    package = f"@restatedev/restate-server@{SERVER}"
    command = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--prefix", work / "npm", package]
    subprocess.run(command, check=True)
    found = list((work / "npm" / "node_modules" / "@restatedev").glob("restate-server-*/bin/restate-server"))
    if not found:
        sys.exit("npm has no restate-server for this platform")
    return found[0]


def build(folder, target, binary, *packages, profile):
    """Both with the optimisation that each is distributed with; for Swirl, the packages of its other benchmarks."""
    command = ["cargo", "build", "--profile", profile, "--target-dir", target, *packages]
    subprocess.run(command, cwd=folder, check=True)
    return target / profile / binary


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(server, folder, ports):
    environment = dict(os.environ)
    environment |= {
        "RESTATE_BASE_DIR": folder,
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ports[1]}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ports[2]}",
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{ports[3]}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{ports[3]}",
        "RESTATE_DISABLE_TELEMETRY": "true",
        "RESTATE_LOG_FILTER": "error",
    }
    return subprocess.Popen([server], env=environment, cwd=folder, stdout=subprocess.DEVNULL)


def register(ports):
    url = f"http://127.0.0.1:{ports[2]}/deployments"
    body = json.dumps({"uri": f"http://127.0.0.1:{ports[0]}"}).encode()
    until = time.monotonic() + READY_MAX
    while True:
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        try:
            urllib.request.urlopen(request, timeout=10).read()
            return
        except (urllib.error.URLError, ConnectionError) as error:
            if time.monotonic() > until:
                sys.exit(f"Restate isn't ready: {error}")
            time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
