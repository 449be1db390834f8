// Drives the extension in VS Code itself, in a browser without a window: see run.sh. The definition is that of
// docs/tour.md, which has a slip in it.

import assert from "node:assert";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const PATIENCE = 60_000;
const here = dirname(fileURLToPath(import.meta.url));
const [swirl = "swirl", pictures] = process.argv.slice(2).map((path) => resolve(path));
const driver = createRequire(join(here, ".code/driver/package.json"));
const { default: puppeteer } = await import(pathToFileURL(driver.resolve("puppeteer-core")).href);

const folder = mkdtempSync(join(tmpdir(), "swirl-code-"));
const workspace = join(folder, "orders");
const code = join(here, ".code/server/node_modules/code-server/out/node/entry.js");
const own = ["--user-data-dir", join(folder, "data"), "--extensions-dir", join(folder, "extensions")];
const env = { ...process.env, XDG_CONFIG_HOME: join(folder, "config"), XDG_DATA_HOME: join(folder, "share") };

function prepare() {
  const tour = readFileSync(join(here, "../../../docs/tour.md"), "utf8");
  const [, definition] = tour.match(/Save this as\s+`order\.sw\.yaml`:\n\n```yaml\n(.*?)```/s);
  mkdirSync(workspace);
  writeFileSync(join(workspace, "order.sw.yaml"), definition);
  mkdirSync(join(folder, "data/User"), { recursive: true });
  const settings = {
    "swirl.path": swirl,
    "chat.disableAIFeatures": true,
    "editor.minimap.enabled": false,
    "security.workspace.trust.enabled": false,
    "telemetry.telemetryLevel": "off",
    "window.commandCenter": false,
    "workbench.colorTheme": "Default Light Modern",
    "workbench.layoutControl.enabled": false,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
  };
  writeFileSync(join(folder, "data/User/settings.json"), JSON.stringify(settings));
  const install = [code, ...own, "--install-extension", join(here, "../swirl.vsix")];
  const installed = spawnSync(process.execPath, install, { env, encoding: "utf8" });
  assert.equal(installed.status, 0, installed.stdout + installed.stderr);
}

/** VS Code on a free port, and where it is. */
async function serve() {
  const quiet = ["--auth", "none", "--disable-telemetry", "--disable-update-check"];
  const child = spawn(process.execPath, [code, ...own, ...quiet, "--bind-addr", "127.0.0.1:0"], { env });
  let log = "";
  const url = await new Promise((there, failed) => {
    const look = (text) => {
      log += text;
      const found = log.match(/listening on (http:\/\/\S+?)\/?\s/);
      if (found) there(found[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", () => failed(new Error(`VS Code does not start:\n${log}`)));
  });
  return { child, url };
}

async function drive(page, url) {
  const take = async (name) => {
    if (pictures) await page.screenshot({ path: join(pictures, name) });
  };
  const there = (selector) => page.waitForSelector(selector, { timeout: PATIENCE, visible: true });
  const gone = (selector) => page.waitForSelector(selector, { timeout: PATIENCE, hidden: true });
  const { host } = new URL(url);
  const open = [["openFile", `vscode-remote://${host}${join(workspace, "order.sw.yaml")}`]];
  const query = new URLSearchParams({ folder: workspace, payload: JSON.stringify(open) });
  await page.goto(`${url}/?${query}`, { waitUntil: "domcontentloaded" });

  // The finding, where it is and in words.
  const slip = await there(".squiggly-error");
  const box = await slip.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.click(x, y);
  await page.mouse.move(x + 2, y, { steps: 5 });
  const message = await there(".monaco-hover .hover-row");
  const text = await message.evaluate((row) => row.innerText);
  assert.match(text, /there is no state 'Pya'/);
  await page.waitForFunction(
    () => !document.querySelector(".monaco-hover").innerText.includes("Loading"),
    { timeout: PATIENCE },
  );
  await take("tour-finding.png");

  // The quick fix takes it away.
  await page.keyboard.press("Escape");
  await page.keyboard.down("Control");
  await page.keyboard.press(".");
  await page.keyboard.up("Control");
  await page.waitForFunction(() => document.body.innerText.includes("write 'Pay'"), { timeout: PATIENCE });
  await page.keyboard.press("Enter");
  await gone(".squiggly-error");

  // The picture beside it, in a frame within a frame.
  const button = "a.action-label[aria-label*='Show the diagram beside']";
  await there(button);
  await page.$eval(button, (action) => action.click());
  const drawn = await page.waitForFunction(
    () => [...document.querySelectorAll("iframe.webview")].some((frame) => frame.classList.contains("ready")),
    { timeout: PATIENCE },
  );
  assert.ok(drawn);
  const svg = await within(page, "svg");
  assert.match(await svg.evaluate((picture) => picture.textContent), /Decide/);
  await take("tour-diagram-beside.png");
}

/** An element in whichever frame it comes. */
async function within(page, selector) {
  const until = Date.now() + PATIENCE;
  while (Date.now() < until) {
    for (const frame of page.frames().filter((frame) => frame !== page.mainFrame())) {
      const found = await frame.$(selector).catch(() => null);
      if (found) return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`there is no ${selector}`);
}

let server;
let browser;
try {
  prepare();
  server = await serve();
  browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"],
    defaultViewport: { width: 1200, height: 760 },
  });
  const page = await browser.newPage();
  try {
    await drive(page, server.url);
  } catch (error) {
    await page.screenshot({ path: join(tmpdir(), "swirl-code-failed.png") });
    throw error;
  }
  console.log("ok");
} finally {
  await browser?.close();
  server?.child.removeAllListeners("exit");
  server?.child.kill();
  rmSync(folder, { recursive: true, force: true });
}
