#!/usr/bin/env python3
"""Has jq 1.6 evaluate the expressions of expressions.txt, and writes its values to jq-1.6.jsonl.

An expression is evaluated as `[ expression ]`, so that all its outputs are there. Debian 12 has jq 1.6:
apt-get install jq. Since 1.6-2.1+deb12u1 it refuses "nan" as a text of a number: the rows with it are those of jq 1.6 as it
was released, and stay.
"""

import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def main():
    version = subprocess.run(["jq", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if version != "jq-1.6":
        sys.exit(f"jq 1.6 is needed, and this is {version}")
    source, lines = "null", []
    for line in (HERE / "expressions.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("< "):
            source = line[2:]
            continue
        try:
            done = subprocess.run(
                ["jq", "-c", f"[{line}\n]"],
                input=source,
                capture_output=True,
                text=True,
                timeout=3,
                env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            sys.exit(f"{line}: jq does not end")
        row = {"input": source, "expression": line}
        if done.returncode == 0:
            row["outputs"] = done.stdout.strip()
        elif done.returncode == 3:
            row["refused"] = True
        else:
            row["error"] = done.stderr.strip().removeprefix("jq: error (at <stdin>:1): ")
        lines.append(json.dumps(row, ensure_ascii=False))
    (HERE / "jq-1.6.jsonl").write_text("\n".join(lines) + "\n")
    print(len(lines), "expressions")


main()
