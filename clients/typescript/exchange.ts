// CloudEvents with their own library: confirms an order over 'http' or 'nats', and prints the event that the workflow
// 'confirmation' produces then. It takes a cluster: produced events come over NATS.

import { randomUUID } from "node:crypto";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { CloudEvent, HTTP } from "cloudevents";
import { start } from "./client.js";

const way = process.argv[2] ?? "nats";
const nats = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
// The subject ends with the event's type.
const shipped = nats.subscribe("swirl.events.org.example.order.shipped");
await nats.flush();

const order = randomUUID();
await start("confirmation", order, { order });
const event = new CloudEvent({
  type: "org.example.order.confirmed",
  source: "/shop",
  orderid: order,
  datacontenttype: "application/json",
  data: { by: "Ada" },
});
if (way === "http") {
  const { headers, body } = HTTP.structured(event);
  const server = process.env.SWIRL_SERVER ?? "http://127.0.0.1:8080";
  const answer = await fetch(`${server}/api/v1/events`, {
    method: "POST",
    headers: { ...(headers as Record<string, string>), Authorization: `Bearer ${process.env.SWIRL_TOKEN ?? ""}` },
    body: body as string,
  });
  if (!answer.ok) throw new Error(await answer.text());
} else {
  // JetStream has it once it acknowledges. With the same message id it drops repeats.
  await jetstream(nats).publish(`swirl.events.${event.type}`, JSON.stringify(event), { msgID: event.id });
}

for await (const message of shipped) {
  const received = new CloudEvent<{ order: string }>(message.json());
  if (received.orderid === order) {
    console.log(JSON.stringify({ type: received.type, source: received.source, data: received.data }));
    break;
  }
}
await nats.drain();
