// Starts `swirl lsp` for definitions, stops it when the editor ends, and shows the diagram beside the text.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");
const { Preview } = require("./preview");

const FILES = ["**/*.sw.yaml", "**/*.sw.yml", "**/*.sw.json"];

let client;

async function start() {
  const command = vscode.workspace.getConfiguration("swirl").get("path") || "swirl";
  const watchers = FILES.map((files) => vscode.workspace.createFileSystemWatcher(files));
  client = new LanguageClient(
    "swirl",
    "Swirl",
    { command, args: ["lsp"] },
    {
      documentSelector: FILES.map((pattern) => ({ scheme: "file", pattern })),
      synchronize: { fileEvents: watchers },
    },
  );
  try {
    await client.start();
  } catch (error) {
    const choice = await vscode.window.showErrorMessage(
      `'${command} lsp' does not start: ${error.message}. Install swirl, or set 'swirl.path' to where it is.`,
      "Open settings",
    );
    if (choice) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "swirl.path");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

// The picture of a definition with the state at a position marked; nothing while the server doesn't run.
async function picture(uri, position) {
  if (!client?.isRunning()) {
    return undefined;
  }
  return client.sendRequest("swirl/diagram", { textDocument: { uri: uri.toString() }, position });
}

async function activate(context) {
  const preview = new Preview(picture);
  context.subscriptions.push(
    preview,
    vscode.commands.registerCommand("swirl.restart", restart),
    vscode.commands.registerCommand("swirl.diagram", () => preview.show()),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("swirl.path")) {
        await restart();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
