#!/usr/bin/env bash
# Resolve the package with its extras in a clean environment and write down what pip chose.
#
#     scripts/lock.sh constraints.txt
#
# rpy2 is built in ABI mode, as `make` builds it: without a compiler and without R.
set -euo pipefail
out="$(realpath -m "${1:?usage: scripts/lock.sh FILE}")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
export RPY2_CFFI_MODE=ABI
pip=("$work/venv/bin/python" -m pip)
# The build backend is named so that it is pinned as well.
"${pip[@]}" install --quiet --quiet --no-input hatchling editables -e '.[test,plot,docs,r]'
{
    echo "# Versions that dpreg is developed and tested with, written by \`make lock\`."
    echo "# Installing the package does not need them; \`make\` uses them to repeat a build."
    "${pip[@]}" freeze --exclude-editable
} >"$work/constraints.txt"
cp "$work/constraints.txt" "$out"
