#!/usr/bin/env bash
# Install the Debian packages of a group of packages.apt that this machine lacks.
#
#     scripts/apt_packages.sh GROUP [PACKAGE...]      # these packages too
#
# Calls apt only when something is missing. Without apt, or without root, it says what to install
# and fails.
set -euo pipefail
group=${1:?usage: scripts/apt_packages.sh GROUP [PACKAGE...]}
list="$(dirname "${BASH_SOURCE[0]}")/../packages.apt"

mapfile -t wanted < <(awk -v group="$group" '!/^[[:space:]]*#/ && $2 == group { print $1 }' "$list")
if ((${#wanted[@]} == 0)); then
    echo "apt_packages.sh: packages.apt has no group '$group'" >&2
    exit 2
fi
wanted+=("${@:2}")

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This machine has no apt. Install the equivalents of: ${wanted[*]}" >&2
    exit 1
fi

missing=()
for package in "${wanted[@]}"; do
    # An absent package makes dpkg-query fail: that is an answer, not an error.
    state="$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)"
    [[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ((EUID != 0)); then
    echo "Missing Debian packages. Please run:  sudo apt-get install ${missing[*]}" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
echo "Installing Debian packages: ${missing[*]}"
apt-get update -qq
# The log of unpacking goes nowhere; what goes wrong is said on standard error.
apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
