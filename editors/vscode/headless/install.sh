#!/bin/sh
# Gets VS Code as a server for browsers (code-server, about 900 MB with its packages), the Node that it needs, and the library that drives
# the browser, all into .code/. It needs Node with npm and its registry; the browser is Debian's package 'chromium'.
#
# No install script of a package is run but Node's own: VS Code then lacks its terminal and its native log, which the test
# doesn't use.
set -eu
cd "$(dirname "$0")"
mkdir -p .code/node .code/server .code/driver
rm -f .code/ready
get() {
  folder=$1
  shift
  [ -f "$folder/package.json" ] || echo '{"private": true}' > "$folder/package.json"
  (cd "$folder" && npm install --no-audit --no-fund --loglevel=error "$@")
}
get .code/node node@24
PATH="$PWD/.code/node/node_modules/node/bin:$PATH"
get .code/driver --ignore-scripts puppeteer-core@25.16.0
get .code/server --ignore-scripts code-server@4.139.1
get .code/server/node_modules/code-server/lib/vscode --ignore-scripts --omit=dev
touch .code/ready
