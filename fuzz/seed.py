#!/usr/bin/env python3
"""Makes the seed corpora of the fuzz targets from the scenario files of all editions, the examples, the wrong documents
and the lists below.

    python3 fuzz/seed.py                        # the small corpora that are committed
    python3 fuzz/seed.py --all --into FOLDER    # everything, for a long run, beside the committed ones

Seeds of `record` are written by the target itself:

    SWIRL_FUZZ_SEEDS=fuzz/corpus/record RUSTC_BOOTSTRAP=1 cargo fuzz run -s none record

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
INTO = HERE / "corpus"
# Of the committed corpora: how many, and how large each may be.
DOCUMENTS, EXPRESSIONS, TIMES, BYTES_MAX = 80, 150, 80, 1500

TIMES_GIVEN = """
PT1S|P1Y2M3DT4H5M6.789S|P1W|2024-02-29T23:59:59.999999999Z|2024-01-01T00:00:00+14:00|PT0.000000001S
R/PT1H|R5/2024-01-01T00:00:00Z/PT1H|R/2024-01-01T00:00:00/P1M|R0/P1D|R/2024-03-31T02:30:00/P1D
2024-01-01T00:00:00Z/2024-02-01T00:00:00Z|P1D/2024-02-01T00:00:00Z|0 0/15 * * * ?|0 0 12 L * ?|0 0 12 ? * 6#3
0 15 10 LW * ? 2024-2030|0 0 0 29 2 ?|*/5 * * * *|0 0 0 1 JAN-DEC MON-FRI|0 0 0 ? * 5L|59 59 23 31 12 ?
0 0 2 * * ?;2024-12-31T00:00:00Z|0 30 2 * * ?|P99999999Y|-PT1S|PT99999999999999999999S
""".replace("\n", "|").strip("|").split("|")
ZONES = ["", "|Europe/Berlin", "|America/New_York", "|UTC", "|Pacific/Apia", "|Nowhere/Here"]

EVENTS = [
    '{"specversion":"1.0","id":"1","source":"/s","type":"t"}',
    '{"specversion":"1.0","id":"1","source":"/s","type":"t.u","orderid":"7","time":"2024-01-01T00:00:00Z","data":{"a":[1,null]}}',
    '{"specversion":"1.0","id":"1","source":"urn:x","type":"t","datacontenttype":"text/plain","data":"x"}',
    '{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"AAECAw==","datacontenttype":"application/octet-stream"}',
    '{"specversion":"1.0","id":"1","source":"/s","type":"t","data":null,"dataschema":"http://x/y","subject":"a b"}',
    "ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\ncontent-type: application/json\n\n{\"a\": 1}",
    "Ce-Specversion: 1.0\nCe-Id: %E2%82%AC\nCe-Source: \"/a b\"\nce-type: t > *\nce-orderid: 7\n\nplain",
    "ce-specversion: 1.0\nce-id: 1\nce-source: /s\nce-type: t\ncontent-type: application/octet-stream\n\n\u00ff\u0000",
]
MESSAGES = ['["i","r"]', '["i","r.1.2"]', '["a \\"b\\"","r"]', '["",""]', "[]", '{"a":1}', '["i","r","x"]']

OPENAPI = {
    "openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "servers": [{"url": "http://h/{v}", "variables": {
        "v": {"default": "1", "enum": ["1", "2"]}}}],
    "paths": {"/a/{id}": {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
        "post": {"operationId": "op", "parameters": [
            {"name": "q", "in": "query", "style": "deepObject", "explode": True, "schema": {"type": "object"}},
            {"name": "h", "in": "header", "schema": {"type": "array", "items": {"type": "integer"}}},
            {"$ref": "#/components/parameters/c"}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}},
                "multipart/form-data": {"schema": {"type": "object"}}}},
            "responses": {"200": {"description": "d", "content": {"application/json": {}}}},
            "security": [{"k": []}]},
        "put": {"operationId": "put", "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {
            "type": "object", "properties": {"x": {"type": "string"}}}}}}, "responses": {}}}},
    "components": {"parameters": {"c": {"name": "c", "in": "cookie", "schema": {"type": "string"}}},
        "schemas": {"S": {"type": "object", "allOf": [{"$ref": "#/components/schemas/S"}]}},
        "securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "k"}}},
}
SWAGGER = {
    "swagger": "2.0", "info": {"title": "t", "version": "1"}, "host": "h", "basePath": "/b", "schemes": ["http"],
    "consumes": ["application/json"], "paths": {"/a": {"post": {"operationId": "op", "parameters": [
        {"name": "b", "in": "body", "schema": {"type": "object"}},
        {"name": "l", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}],
        "responses": {"200": {"description": "d"}}}}},
}
PROTO = """syntax = "proto3";
package p;
import "google/protobuf/timestamp.proto";
message M { string a = 1; repeated M b = 2; map<string, int32> c = 3; oneof o { bool d = 4; E e = 5; }
  google.protobuf.Timestamp t = 6; }
enum E { X = 0; Y = 1; }
service S { rpc m (M) returns (M); rpc n (stream M) returns (stream M); }
"""
ASYNCAPI = {
    "asyncapi": "2.6.0", "info": {"title": "t", "version": "1"},
    "servers": {"s": {"url": "mqtt://h:1883", "protocol": "mqtt"}},
    "channels": {"c/{x}": {"parameters": {"x": {"schema": {"type": "string"}}}, "publish": {"operationId": "op",
        "message": {"payload": {"type": "object"}}, "bindings": {"mqtt": {"qos": 1, "retain": True}}}}},
}
ASYNCAPI3 = {
    "asyncapi": "3.0.0", "info": {"title": "t", "version": "1"},
    "servers": {"s": {"host": "h:4222", "protocol": "nats"}},
    "channels": {"c": {"address": "a.b", "messages": {"m": {"payload": {"type": "string"}}}}},
    "operations": {"op": {"action": "send", "channel": {"$ref": "#/channels/c"}}},
}
# The first byte says of which kind; see the target.
RESOURCES = [
    "\0" + json.dumps(OPENAPI), "\0" + yaml.safe_dump(OPENAPI, sort_keys=False), "\3" + json.dumps(OPENAPI),
    "\0" + json.dumps(SWAGGER), "\4" + PROTO, "\1" + PROTO.replace("package p;\n", ""),
    "\2" + json.dumps(ASYNCAPI), "\2" + yaml.safe_dump(ASYNCAPI3, sort_keys=False),
    "\6query q($a: Int!, $b: [S!] = []) { x(a: $a, b: $b) { y ... on Z { w } ...f } } fragment f on Y { v }",
    "\6mutation { m(i: {a: 1, b: \"x\"}) @include(if: true) { id } }", "\6{ a b: c }",
    "\7People", "\7People('x')/Friends?$filter=a eq 'b'", "\7Things(1)?$expand=Parts&$top=3",
]

REQUESTS = [
    "GET /api/v1/definitions", "GET /api/v1/definitions/w", "GET /api/v1/definitions/w/1.0.0",
    "GET /api/v1/instances?status=running&limit=2&workflow=w&order=asc", "GET /api/v1/openapi.json", "GET /healthz",
    "POST /api/v1/workflows/w/instances\nidempotency-key: k\ncontent-type: application/json\n\n{\"id\": \"7\"}\n---\n"
    "GET /api/v1/instances/k\n---\nPOST /api/v1/instances/k/suspend\n---\nPOST /api/v1/instances/k/resume\n---\n"
    "POST /api/v1/instances/k/cancel",
    "POST /api/v1/events\ncontent-type: application/cloudevents+json\n\n" + EVENTS[1],
    "POST /api/v1/events\ncontent-type: application/cloudevents-batch+json\n\n[" + EVENTS[0] + "," + EVENTS[3] + "]",
    "POST /api/v1/events\n" + EVENTS[5],
    "POST /api/v1/definitions\ncontent-type: application/yaml\n\nid: x\nversion: '1'\nspecVersion: '0.8'\n"
    "start: A\nstates: [{name: A, type: inject, data: {}, end: true}]",
    "POST /api/v1/definitions\ncontent-type: application/vnd.swirl.deployment+json\n\n"
    "{\"document\": \"id: x\", \"resources\": {\"a\": \"b\"}}",
    "POST /api/v1/instances/x/skip\ncontent-type: application/json\n\n{\"result\": {}}",
    "POST /api/v1/instances/x/rerun\ncontent-type: application/json\n\n{\"state\": \"A\"}",
    "DELETE /api/v1/instances/x", "GET /api/v1/instances/x/history?limit=1&after=3",
]


def keep(target, contents, most=1_000):
    folder = INTO / target
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


def is_expression(text):
    """Conditions, paths and operations, which some editions write without any sign."""
    return re.match(r"\s*[.$#(!]", text) or re.search(r"[=<>!]=|[<>]| (and|or|eq|ne|lt|gt|matches|in) |\w\(|&&|\|\|", text)


def expressions_of(workflow):
    for text in strings(workflow):
        marked = re.findall(r"\$\{(.*?)\}\s*$|\{\{(.*?)\}\}", text)
        if marked:
            yield from (one or other for one, other in marked)
        elif is_expression(text) and "\n" not in text:
            yield text


def in_a_language(text):
    """The first byte says in which language; see the target. The fuzzer tries the others by itself."""
    return ("c" if text.lstrip().startswith(("$.", "$[", "@")) else "b") + text


def main():
    global INTO
    arguments = sys.argv[1:]
    everything = "--all" in arguments
    if "--into" in arguments:
        INTO = pathlib.Path(arguments[arguments.index("--into") + 1])
    documents, expressions, times = [], [], []
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.suffix in (".yaml", ".yml", ".json") and ".scenario." not in path.name:
            documents.append(path.read_bytes())
    scenarios = [*(ROOT / "tests/conformance").rglob("*.scenario.yaml"), *(ROOT / "examples").rglob("*.scenario.yaml")]
    for path in sorted(scenarios):
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
                if re.match(r"-?P\d|PT|R\d*/|\d{4}-|[\d*]+[/\d,*-]* [\d*]", text):
                    times.append(text.encode())
            expressions += [in_a_language(found).encode() for found in expressions_of(workflow)]
    for path in sorted((ROOT / "shared/language/spec/tests/wrong").rglob("*")):
        if path.suffix in (".yaml", ".json"):
            documents.append(path.read_bytes())
    if not everything:
        documents = [document for document in documents if len(document) <= BYTES_MAX]
        # Half of them are of DSL 1.0.
        by_name = sorted(documents, key=lambda content: hashlib.sha1(content).hexdigest())
        tasks = [document for document in by_name if re.search(rb"\bdsl\b", document)]
        others = [document for document in by_name if document not in tasks]
        documents = tasks[:DOCUMENTS // 2] + others[:DOCUMENTS // 2]
    keep("document", documents, len(documents) if everything else DOCUMENTS)
    keep("expression", expressions, len(expressions) if everything else EXPRESSIONS)
    times += [(text + zone).encode() for text in TIMES_GIVEN for zone in ZONES]
    keep("time", times, len(times) if everything else TIMES)
    keep("event", [text.encode("latin-1", "replace") for text in EVENTS])
    keep("message", [text.encode() for text in MESSAGES])
    keep("resource", [text.encode() for text in RESOURCES])
    keep("api", [text.encode() for text in REQUESTS])


if __name__ == "__main__":
    main()
