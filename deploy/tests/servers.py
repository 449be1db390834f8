"""Starts redis-server and nats-server with the configurations that are shipped: on free ports of the
loopback interface, with temporary folders, and only its own processes are stopped."""

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

START_MAX_S = 20.0
DEPLOY = Path(__file__).resolve().parent.parent
# Debian keeps nats-server where a plain user's search path may not lead.
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin"


class LeftOut(Exception):
    """A check that this machine lacks a program for."""


def optional(name, package):
    """Where a program is without which a check is left out; a CI server has it."""
    found = shutil.which(name, path=SEARCH)
    if not found and os.environ.get("CI"):
        raise AssertionError(f"{name} is not installed, and a CI server runs every check: apt-get install {package}")
    if not found:
        raise LeftOut(f"{name} is not installed (apt-get install {package})")
    return found


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def program(name):
    found = shutil.which(name, path=SEARCH)
    if not found:
        raise AssertionError(f"{name} is not installed")
    return found


def until(what, ready, process=None, log=None):
    """Waits until `ready` is true; an error counts as not yet."""
    end = time.monotonic() + START_MAX_S
    last = None
    while time.monotonic() < end:
        if process and process.poll() is not None:
            raise AssertionError(f"{what}: it has ended: {log.read_text()[-2000:]}")
        try:
            if ready():
                return
        except (OSError, AssertionError, ValueError) as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {START_MAX_S:.0f} s ({last})")


@contextlib.contextmanager
def running(command, folder, env=None):
    log = Path(folder) / "log"
    with open(log, "ab") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})}
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait(10)


def replaced(path, *pairs):
    """The text of a file with parts of it exchanged; each must be there."""
    text = (DEPLOY / path).read_text()
    for old, new in pairs:
        assert old in text, f"{path} has no '{old}'"
        text = text.replace(old, new)
    return text


# --- Redis


def cli(port, *words, user=None, password=None):
    command = [program("redis-cli"), "-h", "127.0.0.1", "-p", str(port)]
    env = dict(os.environ)
    if user:
        command += ["--user", user, "--no-auth-warning"]
        env["REDISCLI_AUTH"] = password
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=10, env=env)
    return done.stdout.strip()


@contextlib.contextmanager
def redis(folder, *more):
    port = free_ports(1)[0]
    config = Path(folder) / "redis.conf"
    own = [("bind * -::*", "bind 127.0.0.1"), ("port 6379", f"port {port}"), ("dir /data", f"dir {folder}")]
    config.write_text(replaced("redis/redis.conf", *own))
    with running([program("redis-server"), str(config), *more], folder) as (process, log):
        until("redis-server", lambda: cli(port, "PING") in ("PONG", "NOAUTH Authentication required."), process, log)
        yield port, process


def redis_is_durable():
    """What was answered is there after a kill -9, and the settings are those that Swirl asks for."""
    with tempfile.TemporaryDirectory() as folder:
        with redis(folder) as (port, process):
            for name, value in [
                ("appendonly", "yes"),
                ("appendfsync", "always"),
                ("maxmemory-policy", "noeviction"),
                ("no-appendfsync-on-rewrite", "no"),
                ("hash-max-listpack-entries", "32"),
                ("hash-max-listpack-value", "1024"),
            ]:
                assert cli(port, "CONFIG", "GET", name).split()[-1] == value, name
            assert cli(port, "SET", "a", "1") == "OK"
            process.kill()
            process.wait(10)
        with redis(folder) as (port, _):
            assert cli(port, "GET", "a") == "1", "a write was lost"


def redis_users():
    """The user `swirl` may do what Swirl does, and not what only an administrator should."""
    with tempfile.TemporaryDirectory() as folder:
        users = Path(folder) / "users.acl"
        users.write_text(
            replaced("redis/users.acl", ("0" * 64, hashlib.sha256(b"secret").hexdigest()))
        )
        with redis(folder, "--aclfile", str(users)) as (port, _):
            assert cli(port, "GET", "a").startswith("NOAUTH"), "no password is needed"

            def ask(*words, user="swirl"):
                return cli(port, *words, user=user, password="secret")

            library = "#!lua name=t\nredis.register_function('t', function(keys) return redis.call('HSET', keys[1], 'a', 1) end)"
            assert ask("FUNCTION", "LOAD", "REPLACE", library) == "t"
            assert ask("FCALL", "t", "1", "{default:1}:x") == "1"
            assert "redis_version" in ask("INFO", "server")
            assert ask("CONFIG", "GET", "appendfsync").split()[-1] == "always"
            assert ask("ROLE").startswith("master")
            assert ask("PUBLISH", "c", "x") == "0"
            for words in [("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "SET", "appendonly", "no"), ("SHUTDOWN",), ("ACL", "LIST")]:
                assert ask(*words).startswith("NOPERM"), f"{words} is allowed"
            assert ask("ACL", "WHOAMI", user="admin") == "admin"


# --- NATS


class Nats:
    """As much of a client as it takes to ask JetStream."""

    def __init__(self, port, user, password):
        self.socket = socket.create_connection(("127.0.0.1", port), 5)
        self.lines = self.socket.makefile("rb")
        self.lines.readline()
        options = {"verbose": False, "pedantic": False, "user": user, "pass": password, "headers": False}
        self.send(f"CONNECT {json.dumps(options)}\r\nPING\r\nSUB i 1\r\n")
        answer = self.lines.readline().decode()
        if not answer.startswith("PONG"):
            self.close()
            raise AssertionError(f"refused: {answer.strip()}")

    def send(self, text):
        self.socket.sendall(text.encode())

    def ask(self, subject, body=None):
        data = json.dumps(body) if body is not None else ""
        self.send(f"PUB {subject} i {len(data.encode())}\r\n{data}\r\n")
        while True:
            line = self.lines.readline().decode()
            if line.startswith("PING"):
                self.send("PONG\r\n")
            elif line.startswith("MSG"):
                length = int(line.split()[-1])
                return json.loads(self.lines.read(length + 2))
            elif not line or line.startswith("-ERR"):
                raise AssertionError(f"{subject}: {line.strip()}")

    def close(self):
        self.lines.close()
        self.socket.close()


@contextlib.contextmanager
def client(port, user="swirl", password="secret"):
    made = Nats(port, user, password)
    try:
        yield made
    finally:
        made.close()


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
        return json.load(answer)


PASSWORDS = {"NATS_PASSWORD": "secret", "NATS_ADMIN_PASSWORD": "other"}


def own(folder, port, http):
    """The shipped configuration with addresses and folder of a test's own, beside the file that it includes."""
    (Path(folder) / "sync.conf").write_text(replaced("nats/sync.conf"))
    return replaced(
        "nats/nats.conf",
        ('"0.0.0.0:4222"', f'"127.0.0.1:{port}"'),
        ('"0.0.0.0:8222"', f'"127.0.0.1:{http}"'),
        ('"/data/jetstream"', f'"{folder}/jetstream"'),
    )


def nats_single(reserved):
    """`reserved`: the bytes that the streams of a namespace reserve, by name."""
    with tempfile.TemporaryDirectory() as folder:
        port, http = free_ports(2)
        config = Path(folder) / "nats.conf"
        config.write_text(own(folder, port, http))
        command = [program("nats-server"), "-c", str(config)]
        env = {key: value for key, value in os.environ.items() if key not in PASSWORDS}
        refused = subprocess.run([*command, "-t"], capture_output=True, timeout=10, env=env)
        assert refused.returncode != 0, "it starts without passwords"
        with running(command, folder, PASSWORDS) as (process, log):
            until("nats-server", lambda: get(http, "/healthz")["status"] == "ok", process, log)
            try:
                with client(port, password="wrong"):
                    raise AssertionError("a wrong password is accepted")
            except AssertionError as error:
                assert "Authorization" in str(error), error
            with client(port) as nats:
                for name, most in reserved.items():
                    stream = {"name": name, "subjects": [name.lower()], "max_bytes": most, "storage": "file"}
                    made = nats.ask(f"$JS.API.STREAM.CREATE.{name}", {**stream, "retention": "limits"})
                    assert "error" not in made, f"{name} has no room: {made['error']}"
            accounts = get(http, "/jsz?accounts=true&streams=true&consumers=true")["account_details"]
            names = [account["name"] for account in accounts if account.get("stream_detail")]
            assert names == ["SWIRL"], f"JetStream's account is {names}"


def nats_cluster():
    """Three servers find each other, and a stream of three copies is made."""
    with contextlib.ExitStack() as stack:
        ports = free_ports(9)
        routes = ", ".join(f"nats://route:r0ute@127.0.0.1:{port}" for port in ports[6:])
        folders = []
        for index in range(3):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            folders.append(folder)
            # Included by its name, so it has the same.
            (Path(folder) / "nats.conf").write_text(own(folder, ports[index], ports[3 + index]))
            (Path(folder) / "sync.conf").write_text(replaced("nats/sync.conf"))
            config = Path(folder) / "cluster.conf"
            config.write_text(replaced("nats/cluster.conf", ('"0.0.0.0:6222"', f'"127.0.0.1:{ports[6 + index]}"')))
            env = {**PASSWORDS, "NATS_NAME": f"n{index}", "NATS_ROUTE_PASSWORD": "r0ute", "NATS_ROUTES": f"[{routes}]"}
            stack.enter_context(running([program("nats-server"), "-c", str(config)], folder, env))
        log = Path(folders[0]) / "log"

        def made():
            with client(ports[0]) as nats:
                stream = {"name": "S", "subjects": ["s"], "storage": "file", "num_replicas": 3}
                answer = nats.ask("$JS.API.STREAM.CREATE.S", {**stream, "retention": "limits"})
                assert "error" not in answer, answer["error"]
                return len(answer["cluster"]["replicas"]) == 2

        try:
            until("a stream of three copies", made)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()[-2000:]}") from error
