#!/bin/sh
# Generates api.d.ts and compiles the programs into build/. It needs Node 20 or later, and the npm registry. 'fetch' gets
# the packages, and that is all.
set -eu
cd "$(dirname "$0")"
[ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund
[ "${1-}" = fetch ] && exit 0
npm run generate
npm run build
