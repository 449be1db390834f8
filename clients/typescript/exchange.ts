// CloudEvents with their own library: confirms an order over 'nats' or 'http', 'structured' or 'binary', and prints the
// event that the workflow 'confirmation' produces then. It needs a cluster, because produced events come over NATS. With
// 'dev' it sends over HTTP and receives nothing.

import { randomUUID } from "node:crypto";
import { jetstream } from "@nats-io/jetstream";
import { connect, headers as natsHeaders, type Msg, type NatsConnection } from "@nats-io/transport-node";
import { CloudEvent, HTTP, type CloudEventV1 } from "cloudevents";
import { start } from "./client.js";

const [way = "nats", mode = "structured"] = process.argv.slice(2);
const server = process.env.SWIRL_SERVER ?? "http://127.0.0.1:8080";
const order = randomUUID();
const event = new CloudEvent({
  type: "org.example.order.confirmed",
  source: "/shop",
  // The attribute by which the event finds its instance.
  orderid: order,
  datacontenttype: "application/json",
  data: { by: "Ada" },
});
const sent = mode === "binary" ? HTTP.binary(event) : HTTP.structured(event);

async function overHttp(): Promise<void> {
  const headers = { ...(sent.headers as Record<string, string>), Authorization: `Bearer ${process.env.SWIRL_TOKEN ?? ""}` };
  const answer = await fetch(`${server}/api/v1/events`, { method: "POST", headers, body: sent.body as string });
  if (!answer.ok) throw new Error(await answer.text());
}

async function overNats(nats: NatsConnection): Promise<void> {
  // The headers of HTTP are understood over NATS, too.
  const headers = natsHeaders();
  for (const [name, value] of Object.entries(sent.headers)) headers.set(name, String(value));
  // JetStream has it once it acknowledges. With the same message id it drops repeats.
  await jetstream(nats).publish(`swirl.events.${event.type}`, sent.body as string, { msgID: event.id, headers });
}

function received(message: Msg): CloudEventV1<{ order: string }> {
  const headers = Object.fromEntries([...(message.headers ?? [])].map(([name, values]) => [name, values[0]]));
  return HTTP.toEvent<{ order: string }>({ headers, body: message.string() }) as CloudEventV1<{ order: string }>;
}

function show({ type, source, data }: CloudEventV1<unknown>): void {
  console.log(JSON.stringify({ type, source, data }));
}

if (way === "dev") {
  await start("confirmation", order, { order });
  await overHttp();
  show(event);
} else {
  const nats = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
  // The subject ends with the event's type.
  const shipped = nats.subscribe("swirl.events.org.example.order.shipped");
  await nats.flush();
  await start("confirmation", order, { order });
  if (way === "http") await overHttp();
  else await overNats(nats);
  for await (const message of shipped) {
    const event = received(message);
    if (event.orderid === order) {
      show(event);
      break;
    }
  }
  await nats.drain();
}
