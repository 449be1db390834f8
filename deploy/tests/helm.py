#!/usr/bin/env python3
"""The chart, as Helm itself sees it: linted, rendered over a matrix of values, packed, and rendered from the package.
Each document is compared with what the checks of deploy/ render without Helm. `cargo xtask real helm` runs this:

    helm.py HELM
"""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import chart
import servers
import yaml

KEDA_WORKER = chart.KEDA["worker"]
# Each switch with what it may be: every combination is rendered.
SWITCHES = [
    [{"auth": {"mode": "on", "tokensSecret": {"name": "tokens"}}}, {"auth": {"mode": "off"}}],
    [{}, {"worker": {"autoscaling": {"enabled": True}}}, {"worker": KEDA_WORKER}],
    [{}, {"ingress": chart.MOST["ingress"]}],
    [{}, {"serviceMonitor": {"enabled": True}}, {"serviceMonitor": {"enabled": True}, "coordinator": {"tlsSecretName": "tls"}}],
    [{}, {"networkPolicy": {"enabled": True}}, {"egressPolicy": {"enabled": False}}],
    [{}, {"redis": chart.MOST["redis"], "nats": chart.MOST["nats"]}],
]
# Values that the chart's schema and templates must refuse.
WRONG = [
    {"worker": {**KEDA_WORKER, "autoscaling": {"enabled": True}}},
    {"worker": {"keda": {"enabled": True}}},
    {"worker": {"replicas": "two"}},
    {"coordinator": {"prot": 1}},
    {"auth": {"mode": "perhaps"}},
    {"unknown": {}},
]


def merged(*tables):
    table = {}
    for each in tables:
        for key, value in each.items():
            both = isinstance(value, dict) and isinstance(table.get(key), dict)
            table[key] = merged(table[key], value) if both else value
    return table


class Helm:
    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        # Nothing of a user's own Helm is read or changed.
        self.env = {f"HELM_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}

    def run(self, *words):
        done = subprocess.run(
            [self.program, *map(str, words)], capture_output=True, text=True, timeout=60, env={"HOME": str(self.folder), **self.env}
        )
        if done.returncode:
            raise ValueError(f"helm {words[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def with_values(self, values):
        file = self.folder / "values.json"
        file.write_text(json.dumps(values))
        return ["--values", file]

    def template(self, chart_, values, kube="1.34.0"):
        words = ["--namespace", "swirl", "--kube-version", kube]
        return self.run("template", "demo", chart_, *words, *self.with_values(values))


def by_name(text):
    documents = [document for document in yaml.safe_load_all(text) if document]
    objects = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    assert len(objects) == len(documents), "an object is there twice"
    return objects


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        helm = Helm(program, folder)
        print("Helm", helm.run("version", "--template", "{{.Version}} {{.GoVersion}}"))
        named = {"least": chart.LEAST, "most": chart.MOST, "keda": chart.KEDA, "off": chart.OFF}
        for name, values in named.items():
            helm.run("lint", "--strict", chart.CHART, *helm.with_values(values))
        print(f"lint: {len(named)} sets of values")
        count = 0
        for switches in itertools.product(*SWITCHES):
            values = merged({"image": chart.LEAST["image"]}, *switches)
            text = helm.template(chart.CHART, values)
            for document in by_name(text).values():
                chart.object_is_sound(document)
            count += 1
        print(f"template: {count} combinations of values")
        for wrong in WRONG:
            try:
                helm.template(chart.CHART, merged(chart.LEAST, wrong))
            except ValueError:
                continue
            raise AssertionError(f"not refused: {wrong}")
        print(f"refused: {len(WRONG)} sets of wrong values")
        helm.run("package", chart.CHART, "--destination", folder)
        packages = list(Path(folder).glob("*.tgz"))
        assert len(packages) == 1, packages
        for version in ["1.27.0", "1.34.0"]:
            for values in named.values():
                own = helm.template(chart.CHART, values, version)
                assert helm.template(packages[0], values, version) == own, "the package renders other objects"
        try:
            helm.template(packages[0], chart.LEAST, "1.26.0")
        except ValueError as error:
            assert "kubeVersion" in str(error), error
        else:
            raise AssertionError("Kubernetes 1.26 isn't refused")
        print(f"package: {packages[0].name}")
        same_as_rendered(helm, named)


def same_as_rendered(helm, named):
    """The checks that run without Helm see the same objects."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = chart.renderer(folder)
        except servers.LeftOut as reason:
            print(f"left out: the comparison with deploy/tests/render: {reason}")
            return
        for name, values in named.items():
            theirs = by_name(helm.template(chart.CHART, values, "1.30.0"))
            assert chart.rendered(program, values) == theirs, f"{name}: deploy/tests/render differs from Helm"
    print("deploy/tests/render: the same objects")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
