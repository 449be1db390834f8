#!/bin/sh
# Generates the package swirl_client, and checks the types of the programs. It needs Python 3.10 or later with venv, and PyPI;
# its packages go to .venv/. 'fetch' gets them, and that is all.
set -eu
cd "$(dirname "$0")"
../openapi-generator.sh fetch
[ -x .venv/bin/python ] || python3 -m venv .venv
.venv/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
[ "${1-}" = fetch ] && exit 0
rm -rf .generated swirl_client
../openapi-generator.sh --generator-name python --package-name swirl_client --output .generated
mv .generated/swirl_client .
rm -rf .generated
.venv/bin/mypy --strict --follow-imports=silent start.py event.py exchange.py
