#!/bin/sh
# Draws the pictures of docs/tour.md anew, by the commands of the page: 'pictures.sh PATH-TO-SWIRL', after install.sh and
# ../build.sh.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
swirl=$(realpath "$1")
"$here/run.sh" "$swirl" "$here/../../../docs/images"
"$here/.code/node/node_modules/node/bin/node" "$here/tour.mjs" "$swirl" "$here/../../../docs/images"
