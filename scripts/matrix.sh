#!/usr/bin/env bash
# Does dpreg work with each Python, and with the newest and the oldest of what it depends on?
#
#     scripts/matrix.sh [PYTHON...]          # interpreters, by name or path; or: make matrix
#
# HEAD is copied, and for each interpreter two environments are made of wheels alone: the newest
# releases, and the oldest that pyproject.toml admits and this Python has wheels for. In each a dose
# of the tests runs (MATRIX_TESTS names others). The last lines are a table of what ran.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository="$PWD"
pythons=("$@")
((${#pythons[@]})) || pythons=(python3.11 python3.12 python3.13 python3.14)
read -ra tests <<<"${MATRIX_TESTS:-tests/looks tests/choice tests/goldens tests/test_schema.py tests/test_examples.py tests/test_readme.py}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export OPENBLAS_NUM_THREADS=1 PIP_CONSTRAINT=
"${PYTHON:-python3}" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --quiet --no-input uv
uv=("$work/tools/bin/uv" pip)
git -C "$repository" archive --prefix=dpreg/ HEAD | tar -xf - -C "$work"
cd "$work/dpreg"

table=()
failed=0
for python in "${pythons[@]}"; do
    if ! version="$("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null)"; then
        table+=("| $python | | no such interpreter here |")
        failed=1
        continue
    fi
    for edge in ${MATRIX_EDGES:-highest lowest-direct}; do
        place="$work/$version-$edge"
        log="$place.log"
        if ! {
            "$python" -m venv --without-pip "$place" &&
                "${uv[@]}" compile --quiet --no-header --no-annotate --only-binary :all: --resolution "$edge" \
                    --python "$place/bin/python" --extra arrow --extra plot pyproject.toml -o "$place/pins.txt" &&
                "${uv[@]}" install --quiet --python "$place/bin/python" --only-binary :all: -r "$place/pins.txt" \
                    'pytest>=8.4,<9.2' hypothesis hatchling editables polars duckdb &&
                "${uv[@]}" install --quiet --python "$place/bin/python" --no-deps --no-build-isolation -e .
        } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            table+=("| $version | $edge | no environment |")
            failed=1
            continue
        fi
        pins="$(grep -E '^(numpy|scipy|pandas|statsmodels|opendp|python-flint)==' "$place/pins.txt" | tr '\n' ' ' | sed 's/==/ /g')"
        said="$("$place/bin/python" -m pytest -q -p no:cacheprovider "${tests[@]}" 2>&1 | tee "$log" | tail -n 1)" || {
            grep -E '^(FAILED|ERROR)' "$log" >&2 || tail -n 40 "$log" >&2
            failed=1
        }
        table+=("| $version | $pins| $said |")
        echo "${table[-1]}" >&2
    done
done
printf '%s\n' '| Python | dependencies | tests |' '|---|---|---|' "${table[@]}"
exit $failed
