// The diagram of the definition that is being edited, beside it. It follows the cursor.

const { randomBytes } = require("node:crypto");
const vscode = require("vscode");

const DEFINITION = /\.sw\.(ya?ml|json)$/;
// How long the cursor rests before a picture is requested.
const REST_MS = 150;

class Preview {
  // `picture(uri, position)` returns the server's answer.
  constructor(picture) {
    this.picture = picture;
    this.listeners = [];
  }

  show() {
    if (this.panel) {
      this.panel.reveal(undefined, true);
      return this.draw();
    }
    const place = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel("swirl.diagram", "Workflow", place, { enableScripts: true });
    this.panel = panel;
    panel.webview.html = page();
    this.listeners = [
      panel.onDidDispose(() => this.close()),
      vscode.window.onDidChangeTextEditorSelection(() => this.rest()),
      vscode.window.onDidChangeActiveTextEditor(() => this.rest()),
      // Findings come once a text has been read: then there may be another picture.
      vscode.languages.onDidChangeDiagnostics(({ uris }) => {
        if (uris.some((uri) => uri.toString() === this.uri?.toString())) {
          this.rest();
        }
      }),
      panel.webview.onDidReceiveMessage(() => this.draw()),
    ];
    return this.draw();
  }

  rest() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.draw(), REST_MS);
  }

  async draw() {
    const editor = vscode.window.activeTextEditor;
    if (editor && DEFINITION.test(editor.document.uri.path)) {
      this.uri = editor.document.uri;
      this.position = editor.selection.active;
    }
    if (!this.panel || !this.uri) {
      return;
    }
    const { line, character } = this.position;
    const drawing = await this.picture(this.uri, { line, character }).catch(() => undefined);
    if (drawing && this.panel) {
      await this.panel.webview.postMessage({ svg: drawing.svg, state: drawing.state });
    }
  }

  close() {
    clearTimeout(this.timer);
    this.listeners.forEach((listener) => listener.dispose());
    this.listeners = [];
    this.panel = undefined;
  }

  dispose() {
    this.panel?.dispose();
    this.close();
  }
}

// The page asks for its first picture once it listens.
function page() {
  const nonce = randomBytes(16).toString("hex");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-${nonce}'">
<title>Workflow</title>
</head>
<body>
<div id="picture">There is a picture once the definition has no errors.</div>
<script nonce="${nonce}">
const picture = document.getElementById("picture");
window.addEventListener("message", ({ data }) => {
  if (!data.svg) return;
  picture.innerHTML = data.svg;
  picture.querySelector(".here")?.scrollIntoView({ block: "nearest", inline: "nearest" });
});
acquireVsCodeApi().postMessage("ready");
</script>
</body>
</html>`;
}

module.exports = { Preview };
