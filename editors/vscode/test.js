// Drives 'swirl lsp' as an editor does, over the protocol's own client library, and loads the extension with a
// simulated editor. 'node test.js PATH-TO-SWIRL', after 'npm ci'.

const assert = require("node:assert");
const { spawn } = require("node:child_process");
const Module = require("node:module");
const { createMessageConnection, StreamMessageReader, StreamMessageWriter } = require("vscode-jsonrpc/node");

const URI = "file:///shop/order.sw.yaml";
const TEXT = `id: order
version: 1.0.0
specVersion: '0.8'
states:
  - {name: Begin, type: inject, data: {}, transition: Doen}
  - {name: Done, type: inject, data: {ok: true}, end: true}
`;
const POSITION = { line: 4, character: 54 };

async function server(command) {
  const child = spawn(command, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const reader = new StreamMessageReader(child.stdout);
  const connection = createMessageConnection(reader, new StreamMessageWriter(child.stdin));
  const findings = [];
  let told = () => {};
  connection.onNotification("textDocument/publishDiagnostics", (params) => {
    findings.push(params);
    told();
  });
  const next = async (version) => {
    for (;;) {
      const found = findings.find((params) => params.version === version);
      if (found) return found.diagnostics;
      await new Promise((resolve) => (told = resolve));
    }
  };
  connection.listen();

  const about = await connection.sendRequest("initialize", { processId: process.pid, rootUri: null, capabilities: {} });
  assert.equal(about.serverInfo.name, "swirl");
  await connection.sendNotification("initialized", {});
  const textDocument = { uri: URI };
  const item = { uri: URI, languageId: "yaml", version: 1, text: TEXT };
  await connection.sendNotification("textDocument/didOpen", { textDocument: item });
  const found = (await next(1)).find((one) => one.code === "unknown-state");
  assert.ok(found, "the finding as the document is opened");

  const at = { textDocument, position: POSITION };
  const hover = await connection.sendRequest("textDocument/hover", at);
  assert.match(hover.contents.value, /^# unknown-state/);
  const range = found.range;
  const action = { textDocument, range, context: { diagnostics: [found] } };
  const [fix] = await connection.sendRequest("textDocument/codeAction", action);
  const [edit] = fix.edit.changes[URI];
  assert.equal(edit.newText, "Done");
  const change = { textDocument: { uri: URI, version: 2 }, contentChanges: [{ range: edit.range, text: edit.newText }] };
  await connection.sendNotification("textDocument/didChange", change);
  const left = (await next(2)).filter((one) => one.severity === 1);
  assert.deepEqual(left, [], "the fix takes the finding away");
  const offered = await connection.sendRequest("textDocument/completion", at);
  const labels = (offered.items ?? offered).map((one) => one.label);
  assert.ok(labels.includes("Done"), `${labels} has the states`);
  const symbols = await connection.sendRequest("textDocument/documentSymbol", { textDocument });
  assert.deepEqual(symbols.map((one) => one.name), ["Begin", "Done"]);
  const drawing = await connection.sendRequest("swirl/diagram", { textDocument, position: { line: 5, character: 12 } });
  assert.equal(drawing.state, "Done");
  assert.match(drawing.svg, /^<svg .*card here/s);

  await connection.sendRequest("shutdown");
  await connection.sendNotification("exit");
  assert.equal(await ended, 0);
  connection.dispose();
}

async function extension() {
  const started = [];
  const commands = new Map();
  const nothing = { dispose() {} };
  // The listeners, by the name of the event.
  const listeners = new Map();
  const on = (name) => (listener) => (listeners.set(name, listener), nothing);
  const shown = [];
  const webview = { onDidReceiveMessage: on("message"), postMessage: async (message) => shown.push(message) };
  const panel = { webview, reveal() {}, onDidDispose: on("disposed"), dispose: () => listeners.get("disposed")() };
  const active = { line: 3, character: 7 };
  const editor = { document: { uri: { path: "/a.sw.yaml", toString: () => URI } }, selection: { active } };
  const played = {
    vscode: {
      ViewColumn: { Beside: -2 },
      languages: { onDidChangeDiagnostics: on("diagnostics") },
      workspace: {
        getConfiguration: () => ({ get: () => "/opt/swirl" }),
        createFileSystemWatcher: () => nothing,
        onDidChangeConfiguration: () => nothing,
      },
      window: {
        activeTextEditor: editor,
        showErrorMessage: async () => undefined,
        createWebviewPanel: () => panel,
        onDidChangeActiveTextEditor: on("editor"),
        onDidChangeTextEditorSelection: on("selection"),
      },
      commands: { registerCommand: (name, run) => (commands.set(name, run), nothing) },
    },
    "vscode-languageclient/node": {
      LanguageClient: class {
        constructor(_id, _name, server, client) {
          Object.assign(this, { server, client, runs: false });
        }
        async start() {
          this.runs = true;
          started.push(this);
        }
        async stop() {
          this.runs = false;
        }
        isRunning() {
          return this.runs;
        }
        async sendRequest(method, params) {
          return { svg: `<svg>${method} ${params.position.line}</svg>`, state: "Begin" };
        }
      },
    },
  };
  const load = Module._load;
  Module._load = (name, ...rest) => played[name] ?? load(name, ...rest);
  const { activate, deactivate } = require("./extension.js");
  Module._load = load;

  await activate({ subscriptions: [] });
  assert.deepEqual(started[0].server, { command: "/opt/swirl", args: ["lsp"] });
  const { contributes } = require("./package.json");
  assert.deepEqual([...commands.keys()], contributes.commands.map((one) => one.command));
  await preview({ commands, listeners, shown, panel, active });
  await commands.get("swirl.restart")();
  assert.deepEqual(started.map((one) => one.runs), [false, true]);
  await deactivate();
  assert.ok(!started[1].runs, "nothing runs on");
}

// The picture is there at once, follows the cursor and the findings, and ends with its panel.
async function preview({ commands, listeners, shown, panel, active }) {
  const drawn = async (count) => {
    while (shown.length < count) await new Promise((resolve) => setTimeout(resolve, 5));
    return shown[count - 1].svg;
  };
  await commands.get("swirl.diagram")();
  assert.equal(await drawn(1), "<svg>swirl/diagram 3</svg>");
  assert.match(panel.webview.html, /script-src 'nonce-[0-9a-f]{32}'/);
  active.line = 4;
  listeners.get("selection")();
  listeners.get("selection")();
  assert.equal(await drawn(2), "<svg>swirl/diagram 4</svg>");
  listeners.get("diagnostics")({ uris: ["file:///other.sw.yaml"] });
  listeners.get("diagnostics")({ uris: [URI] });
  await drawn(3);
  panel.dispose();
  listeners.get("message")();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(shown.length, 3, "the cursor's two moves are one picture, another document's findings none");
}

async function main() {
  await extension();
  await server(process.argv[2] ?? "swirl");
  console.log("ok");
}

const patience = setTimeout(() => {
  console.error("the server did not answer in time");
  process.exit(1);
}, 60_000);
main().then(
  () => clearTimeout(patience),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
