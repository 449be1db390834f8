// Draws the pictures of docs/tour.md that show pages: see pictures.sh.

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [swirl, pictures] = process.argv.slice(2).map((path) => resolve(path));
const driver = createRequire(join(here, ".code/driver/package.json"));
const { default: puppeteer } = await import(pathToFileURL(driver.resolve("puppeteer-core")).href);

const page = readFileSync(join(here, "../../../docs/tour.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "swirl-tour-"));

function save(name) {
  const [, text] = page.match(new RegExp(`Save this as\\s+\`${name}\`:\n\n\`\`\`\\w+\n(.*?)\`\`\``, "s"));
  writeFileSync(join(folder, name), text.replace("transition: Pya", "transition: Pay"));
}

function run(...args) {
  const done = spawnSync(swirl, args, { cwd: folder, encoding: "utf8" });
  if (done.status !== 0) throw new Error(`swirl ${args.join(" ")}: ${done.stdout}${done.stderr}`);
  return done.stdout.trim();
}

async function serve() {
  const child = spawn(swirl, ["dev", "--memory", "--color", "never", "--listen", "127.0.0.1:0", "."], { cwd: folder });
  const url = await new Promise((there, failed) => {
    let log = "";
    child.stderr.on("data", (text) => {
      log += text;
      const found = log.match(/the API is at (\S+)\/api\/v1\/openapi\.json/);
      if (found) there(found[1]);
    });
    child.on("exit", () => failed(new Error(log)));
  });
  return { child, url };
}

let server;
let browser;
try {
  save("order.sw.yaml");
  save("paid.scenario.yaml");
  run("test", ".", "--coverage-html", "coverage.html");
  server = await serve();
  const input = '{"order": "A-7", "items": [{"price": 3, "count": 2}]}';
  const id = run("start", "order", "--server", server.url, "--input", input);
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
    defaultViewport: { width: 1200, height: 760 },
  });
  const shown = await browser.newPage();
  for (const [address, width, height, name] of [
    [pathToFileURL(join(folder, "coverage.html")).href, 640, 1080, "tour-coverage.png"],
    [`${server.url}/console/instances/${id}`, 1200, 920, "tour-instance.png"],
  ]) {
    await shown.setViewport({ width, height });
    await shown.goto(address, { waitUntil: "load" });
    await shown.screenshot({ path: join(pictures, name) });
  }
} finally {
  await browser?.close();
  server?.child.removeAllListeners("exit");
  server?.child.kill();
  rmSync(folder, { recursive: true, force: true });
}
