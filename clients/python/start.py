"""Starts an instance of the workflow 'hello', waits for its end, and prints its output."""

import json
from uuid import uuid4

from client import ended, start

instance = ended(start("hello", str(uuid4()), {"name": "Ada"}))
if instance.status != "completed":
    raise SystemExit(f"{instance.status}: {instance.error}")
print(json.dumps(instance.output, separators=(",", ":")))
