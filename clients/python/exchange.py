"""CloudEvents with their own library: confirms an order over 'http' or 'nats', and prints the event that the workflow
'confirmation' produces then. It takes a cluster: produced events come over NATS."""

import asyncio
import json
import os
import sys
from uuid import uuid4

import nats
import urllib3
from cloudevents.core.bindings.http import to_structured_event
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from client import start


def confirmation(order: str) -> CloudEvent:
    attributes = {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "/shop",
        "type": "org.example.order.confirmed",
        "datacontenttype": "application/json",
        # The attribute by which the event finds its instance.
        "orderid": order,
    }
    return CloudEvent(attributes=attributes, data={"by": "Ada"})


def over_http(event: CloudEvent) -> None:
    message = to_structured_event(event)
    server = os.environ.get("SWIRL_SERVER", "http://127.0.0.1:8080")
    headers = {**message.headers, "Authorization": f"Bearer {os.environ.get('SWIRL_TOKEN', '')}"}
    answer = urllib3.request("POST", f"{server}/api/v1/events", body=message.body, headers=headers)
    if answer.status != 202:
        raise SystemExit(answer.data.decode())


async def main(way: str) -> None:
    connection = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    # The subject ends with the event's type.
    shipped = await connection.subscribe("swirl.events.org.example.order.shipped")
    await connection.flush()
    order = str(uuid4())
    start("confirmation", order, {"order": order})
    event = confirmation(order)
    if way == "http":
        over_http(event)
    else:
        # JetStream has it once it acknowledges. With the same message id it drops repeats.
        payload = JSONFormat().write(event)
        headers = {"Nats-Msg-Id": event.get_id()}
        await connection.jetstream().publish(f"swirl.events.{event.get_type()}", payload, headers=headers)
    async for message in shipped.messages:
        received = JSONFormat().read(CloudEvent, message.data)
        if received.get_extension("orderid") == order:
            shown = {"type": received.get_type(), "source": received.get_source(), "data": received.get_data()}
            print(json.dumps(shown, separators=(",", ":")))
            break
    await connection.drain()


asyncio.run(main(*sys.argv[1:] or ["nats"]))
