#!/usr/bin/env bash
# Brings a fresh machine to where `watercolour` works. Runs again in a blink when nothing is missing.
#   .tools        uv, the installer
#   .venv         everything but the browser driver
#   .venv-render  the renderer: pyppeteer pins websockets < 11, so it lives apart and speaks HTTP
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\033[2m%s\033[0m\n' "$*" >&2; }
missing() { printf 'watercolour: %s is missing. Install it with:  %s\n' "$1" "$2" >&2; exit 3; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null || missing "Python 3.11 or newer" "apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    missing "Python 3.11 or newer (found $("$python" -V 2>&1))" "apt-get install python3 python3-venv"

if [ ! -x .tools/bin/uv ]; then
    say "setting up the installer"
    rm -rf .tools
    "$python" -m venv .tools 2>/dev/null ||
        { rm -rf .tools; missing "Python's venv module" "apt-get install python3-venv"; }
    .tools/bin/python -m pip install --quiet "uv>=0.8,<1"
fi

# An environment is current when its lock and pyproject.toml are the ones it was made from.
environment() { # FOLDER LOCK WHAT
    local stamp want
    stamp=$1/.made-from
    want=$(cat "$2" pyproject.toml | sha256sum)
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && return
    say "installing $3 ($1)"
    [ -x "$1/bin/python" ] || .tools/bin/uv venv --quiet --python "$python" "$1"
    VIRTUAL_ENV=$PWD/$1 .tools/bin/uv pip sync --quiet --require-hashes "$2"
    VIRTUAL_ENV=$PWD/$1 .tools/bin/uv pip install --quiet --no-deps -e .
    printf '%s\n' "$want" >"$stamp"
}
environment .venv-render locks/render.txt "the renderer"
environment .venv locks/main.txt "trainer, environment and scorer (PyTorch: about 5 GB, two to three minutes)"

if ! command -v chromium >/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        say "installing Chromium"
        scripts/debian.sh chromium >/dev/null 2>&1 ||
            missing "Chromium" "apt-get install chromium"
    else
        missing "Chromium" "sudo apt-get install chromium"
    fi
fi

.venv-render/bin/python -m watercolour.render.vendor
.venv/bin/python -m watercolour.score.weights
