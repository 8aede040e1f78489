#!/usr/bin/env bash
# Renews locks/*.txt: exact pins and hashes, no index address, for Python 3.11 and newer on Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    .tools/bin/uv pip compile pyproject.toml --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --quiet "$@"
}
compile --extra train --extra score --extra operator --extra cli --extra dev -o locks/main.txt
compile --extra render -o locks/render.txt
compile --extra operator -o locks/operator.txt
compile --extra score -o locks/score.txt
compile --extra hpsv3 -o locks/hpsv3.txt
