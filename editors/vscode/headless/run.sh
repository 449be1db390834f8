#!/bin/sh
# Loads the extension into VS Code and drives it in a browser without a window. 'run.sh PATH-TO-SWIRL [FOLDER]', after
# install.sh and ../build.sh; pictures of it go to the folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PATH="$here/.code/node/node_modules/node/bin:$PATH"
exec node "$here/drive.mjs" "$@"
