#!/usr/bin/env python3
"""Makes the seed corpora of the fuzz targets from the scenario files and the wrong documents.

    python3 fuzz/seed.py            # the small corpora that are committed
    python3 fuzz/seed.py --all      # everything, for a long run

Needs PyYAML. Names are derived from the content, so that a second run changes nothing.
"""
import hashlib
import json
import pathlib
import re
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# Of the committed corpora: how many, and how large each may be.
DOCUMENTS, EXPRESSIONS, BYTES_MAX = 80, 150, 1500


def keep(target, contents, most):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    # White space as in all files of the project.
    tidy = [re.sub(rb"[ \t]+(?=\n|$)", b"", content.strip()) + b"\n" for content in contents]
    named = {hashlib.sha1(content).hexdigest()[:16]: content for content in tidy}
    for name in sorted(named)[:most]:
        (folder / name).write_bytes(named[name])
    print(f"{target}: {min(len(named), most)} of {len(named)}")


def strings(value):
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


def main():
    everything = "--all" in sys.argv[1:]
    documents, expressions = [], []
    for path in sorted((ROOT / "tests/conformance").rglob("*.scenario.yaml")):
        try:
            scenario = yaml.safe_load(path.read_text())
        except yaml.YAMLError:
            continue
        for workflow in scenario.get("workflows", []):
            if not isinstance(workflow, dict):
                continue
            documents.append(json.dumps(workflow, default=str).encode())
            documents.append(yaml.safe_dump(workflow, sort_keys=False).encode())
            for text in strings(workflow):
                expressions += [found.encode() for found in re.findall(r"\$\{(.*?)\}\s*$", text)]
    for path in sorted((ROOT / "shared/spec/tests/wrong").iterdir()):
        if path.suffix in (".yaml", ".json"):
            documents.append(path.read_bytes())
    if not everything:
        documents = [document for document in documents if len(document) <= BYTES_MAX]
    keep("document", documents, len(documents) if everything else DOCUMENTS)
    keep("expression", expressions, len(expressions) if everything else EXPRESSIONS)


if __name__ == "__main__":
    main()
