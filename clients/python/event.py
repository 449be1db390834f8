"""Starts an instance of the workflow 'confirmation', sends the event that it waits for, and prints its output."""

import json
from uuid import uuid4

from swirl_client import CloudEvent

from client import ended, events, start

order = str(uuid4())
id = start("confirmation", order, {"order": order})
event = CloudEvent(
    specversion="1.0",
    id=str(uuid4()),
    source="/shop",
    type="org.example.order.confirmed",
    data={"by": "Ada"},
    # The attribute by which the event finds its instance.
    additional_properties={"orderid": order},
)
[accepted] = events.publish_events(event).accepted
if id not in (accepted.instances or []) and not accepted.kept:
    raise SystemExit(f"nobody waits for the event: {accepted.reasons}")
instance = ended(id)
if instance.status != "completed":
    raise SystemExit(f"{instance.status}: {instance.error}")
print(json.dumps(instance.output, separators=(",", ":")))
