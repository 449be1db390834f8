// Starts an instance of the workflow 'hello', waits for its end, and prints its output.

import { randomUUID } from "node:crypto";
import { ended, start } from "./client.js";

const id = await start("hello", randomUUID(), { name: "Ada" });
const instance = await ended(id);
if (instance.status !== "completed") {
  throw new Error(`${instance.status}: ${instance.error?.message}`);
}
console.log(JSON.stringify(instance.output));
