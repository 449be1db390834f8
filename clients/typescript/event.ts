// Starts an instance of the workflow 'confirmation', sends the event that it waits for, and prints its output.

import { randomUUID } from "node:crypto";
import { type CloudEvent, client, ended, expect, start } from "./client.js";

const order = randomUUID();
const id = await start("confirmation", order, { order });
const event: CloudEvent = {
  specversion: "1.0",
  id: randomUUID(),
  source: "/shop",
  type: "org.example.order.confirmed",
  // The attribute by which the event finds its instance.
  orderid: order,
  data: { by: "Ada" },
};
const answer = await client.POST("/api/v1/events", {
  body: event,
  headers: { "Content-Type": "application/cloudevents+json" },
});
const [accepted] = expect(answer).accepted;
if (!accepted?.instances?.includes(id) && !accepted?.kept) {
  throw new Error(`nobody waits for the event: ${accepted?.reasons}`);
}
const instance = await ended(id);
if (instance.status !== "completed") {
  throw new Error(`${instance.status}: ${instance.error?.message}`);
}
console.log(JSON.stringify(instance.output));
