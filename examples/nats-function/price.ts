// A function over NATS: it gives the price of an item. With the client library `@nats-io/transport-node`:
//
//     npm install @nats-io/transport-node
//     npx tsx price.ts [HOST:PORT] [SUBJECT]

import { connect } from "@nats-io/transport-node";

type Call = { arguments: { item?: string }; key: string };
type Failure = { error: { name?: string; code?: string; message: string; retryable?: boolean } };

const prices: Record<string, number> = { lamp: 3990, book: 1290 };

function price(call: Call): { item: string; price: number } | Failure {
  const item = call.arguments.item ?? "";
  const found = prices[item];
  if (found === undefined) {
    const message = `there is no item '${item}'`;
    return { error: { name: "UnknownItem", message, retryable: false } };
  }
  return { item, price: found };
}

const [servers = "127.0.0.1:4222", subject = "functions.price"] = process.argv.slice(2);
const connection = await connect({ servers });
// Of all members of the queue `price` one takes each call.
const calls = connection.subscribe(subject, { queue: "price" });
console.log(`serving ${subject} at ${servers}`);
for await (const message of calls) {
  try {
    message.respond(JSON.stringify(price(message.json<Call>())));
  } catch (error) {
    // A fault of this program must not leave the caller waiting.
    message.respond(JSON.stringify({ error: { code: "failed", message: String(error) } }));
  }
}
