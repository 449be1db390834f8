// The client of a server: its types come from 'npm run generate'.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

export type CloudEvent = components["schemas"]["CloudEvent"];
export type Instance = components["schemas"]["Instance"];

const baseUrl = process.env.SWIRL_SERVER ?? "http://127.0.0.1:8080";
const token = process.env.SWIRL_TOKEN;

export const client = createClient<paths>({
  baseUrl,
  headers: token ? { Authorization: `Bearer ${token}` } : {},
});

/** What came, or the server's problem as an error. */
export function expect<T>(answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.data === undefined) {
    throw new Error(`${answer.error?.code}: ${answer.error?.detail}`);
  }
  return answer.data;
}

/** Starts an instance. The same key starts one only, however often this is tried. */
export async function start(workflow: string, key: string, input: Record<string, unknown>): Promise<string> {
  const answer = await client.POST("/api/v1/workflows/{id}/instances", {
    params: { path: { id: workflow }, header: { "Idempotency-Key": key } },
    body: input,
  });
  return expect(answer).id;
}

/** Waits for the end. The server waits for up to a minute, so it is asked again. */
export async function ended(id: string): Promise<Instance> {
  for (;;) {
    const answer = await client.GET("/api/v1/instances/{id}", { params: { path: { id }, query: { wait: "PT60S" } } });
    const instance = expect(answer);
    if (instance.status !== "running") {
      return instance;
    }
  }
}
