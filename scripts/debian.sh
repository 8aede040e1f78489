#!/usr/bin/env bash
# Installs Debian packages, as root: scripts/debian.sh PACKAGE... (flags of apt-get's may stand among them).
# apt-get refuses at once while another one works, and our builds run side by side: here each waits its turn.
set -euo pipefail
exec 9>/var/cache/apt/watercolour.lock
flock 9
wait=DPkg::Lock::Timeout=600  # for one that is not ours
apt-get -o "$wait" update -q
DEBIAN_FRONTEND=noninteractive apt-get -o "$wait" install -qy "$@"
