#!/bin/sh
# Builds swirl.vsix: the extension with its dependencies, to be installed with
# 'code --install-extension swirl.vsix'. It needs Node 20 or later, and the npm registry.
set -eu
cd "$(dirname "$0")"
npm ci --omit=dev --ignore-scripts --no-audit --no-fund
npx --yes @vscode/vsce@3.6.0 package --no-git-tag-version --allow-missing-repository --skip-license --out swirl.vsix
