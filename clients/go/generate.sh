#!/bin/sh
# Generates the package swirl, and compiles the programs into bin/. It needs Go 1.19 or later for the programs, and for the
# generator Python 3 with venv, and PyPI. The package uses Go's own library alone. 'fetch' gets the generator, and that is all.
set -eu
cd "$(dirname "$0")"
../openapi-generator.sh fetch
[ "${1-}" = fetch ] && exit 0
rm -rf swirl
../openapi-generator.sh --generator-name go --package-name swirl --output swirl \
  --additional-properties withGoMod=false,enumClassPrefix=true
go vet ./...
go build -o bin/ ./start ./event
