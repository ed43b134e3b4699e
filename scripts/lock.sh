#!/usr/bin/env bash
# Resolve the package with all its extras and write down what was chosen, with hashes.
#
#     scripts/lock.sh
#
# locks/NAME.txt is what `make` installs before the project itself, which pip then installs with
# --no-deps: pip takes no hashes beside -e. One resolution serves all of them. constraints.txt
# holds the same versions without hashes, for what pip builds with and for whoever wants them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --quiet --no-input uv

# The build backend is named so that it is pinned as well, and setuptools for what comes as source.
printf '%s\n' hatchling editables 'setuptools<81' wheel >"$work/build.in"
resolve() {
    "$work/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --upgrade \
        --no-header --no-annotate pyproject.toml "$work/build.in" "$@"
}

extras() { printf -- '--extra %s ' "$@"; }
# shellcheck disable=SC2046  # the words are meant to split
resolve $(extras test plot docs look release r) -o "$work/all.txt"
{
    echo "# Versions that dpreg is developed and tested with, written by \`make lock\`."
    echo "# Installing the package does not need them; \`make\` uses them to repeat a build."
    cat "$work/all.txt"
} >constraints.txt

mkdir -p locks
lock() {
    local name=$1
    shift
    # shellcheck disable=SC2046
    resolve --generate-hashes -c "$work/all.txt" $( (($#)) && extras "$@") -o "$work/$name.txt"
    { echo "# Written by \`make lock\`; do not edit."; cat "$work/$name.txt"; } >"locks/$name.txt"
}
lock run
lock test test plot
lock docs docs plot
lock look look
lock release release
lock r test plot r
