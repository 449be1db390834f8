"""CloudEvents with their own library: confirms an order over 'nats' or 'http', 'structured' or 'binary', and prints the
event that the workflow 'confirmation' produces then. It needs a cluster, because produced events come over NATS. With
'dev' it sends over HTTP and receives nothing."""

import asyncio
import json
import os
import sys
from uuid import uuid4

import nats
import urllib3
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings.http import HTTPMessage, from_http_event, to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from nats.aio.client import Client

from client import start

SERVER = os.environ.get("SWIRL_SERVER", "http://127.0.0.1:8080")


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


def over_http(message: HTTPMessage) -> None:
    headers = {**message.headers, "Authorization": f"Bearer {os.environ.get('SWIRL_TOKEN', '')}"}
    answer = urllib3.request("POST", f"{SERVER}/api/v1/events", body=message.body, headers=headers)
    if answer.status != 202:
        raise SystemExit(answer.data.decode())


async def over_nats(connection: Client, event: CloudEvent, message: HTTPMessage) -> None:
    # The headers of HTTP are understood over NATS, too. JetStream has the event once it acknowledges. With the same
    # message id it drops repeats.
    headers = {**message.headers, "Nats-Msg-Id": event.get_id()}
    subject = f"swirl.events.{event.get_type()}"
    await connection.jetstream().publish(subject, message.body, headers=headers)


def show(event: BaseCloudEvent) -> None:
    shown = {"type": event.get_type(), "source": event.get_source(), "data": event.get_data()}
    print(json.dumps(shown, separators=(",", ":")))


async def main(way: str = "nats", mode: str = "structured") -> None:
    order = str(uuid4())
    event = confirmation(order)
    sent = to_binary_event(event) if mode == "binary" else to_structured_event(event)
    if way == "dev":
        start("confirmation", order, {"order": order})
        over_http(sent)
        show(event)
        return
    connection = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"))
    # The subject ends with the event's type.
    shipped = await connection.subscribe("swirl.events.org.example.order.shipped")
    await connection.flush()
    start("confirmation", order, {"order": order})
    if way == "http":
        over_http(sent)
    else:
        await over_nats(connection, event, sent)
    async for message in shipped.messages:
        received = from_http_event(HTTPMessage(message.headers or {}, message.data))
        if received.get_extension("orderid") == order:
            show(received)
            break
    await connection.drain()


asyncio.run(main(*sys.argv[1:]))
