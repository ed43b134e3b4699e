#!/usr/bin/env bash
# Build the R package, check it as CRAN does, and run the tests that start R from Python.
#
#     scripts/r_check.sh PYTHON [PYTEST ARGUMENTS...]
#
# Everything happens in a temporary folder. A warning, an unexpected note or a skipped test fails.
# With DPREG_R_DIST, a folder, the archive that was checked is put there and R's own tests are all.
set -euo pipefail
python="$(realpath -s "${1:?usage: scripts/r_check.sh PYTHON}")"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository="$PWD"

export DPREG_REQUIRE_PYTHON=1 DPREG_PYTHON="$python"
export LC_ALL=C.UTF-8 _R_CHECK_FORCE_SUGGESTS_=true
# No network is needed: neither the time of day nor the index of CRAN is asked for.
export _R_CHECK_SYSTEM_CLOCK_=false R_REPOSITORIES=NULL _R_CHECK_CRAN_INCOMING_=false
export _R_CHECK_EXAMPLE_TIMING_THRESHOLD_=600

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir library
R CMD build --quiet "$repository/r_bridge/dpreg" >build.log 2>&1 || { cat build.log >&2; exit 1; }
R CMD check --as-cran --no-manual --library="$work/library" dpreg_*.tar.gz >check.log 2>&1 || {
    cat check.log >&2
    tail -n 60 dpreg.Rcheck/tests/testthat.Rout.fail dpreg.Rcheck/*.out >&2 2>/dev/null || true
    exit 1
}

# The first example starts Python: none takes twice its time, whatever the machine.
if ! awk -F '\t' 'NR == 2 { first = $2 + $3 } NR > 2 && $2 + $3 > 2 * first {
    print "r_check.sh: the example of " $1 " takes " $2 + $3 " s, and the first one, with Python, " first; slow = 1 }
    END { exit slow }' dpreg.Rcheck/dpreg-Ex.timings >&2; then exit 1; fi
# No note is expected: an explained one would be taken out of the log here, with its reason.
if ! grep -q '^Status: OK$' check.log; then
    cat check.log >&2
    exit 1
fi
if ! grep -Eq '\| WARN 0 \| SKIP 0 \|' dpreg.Rcheck/tests/testthat.Rout; then
    echo "r_check.sh: tests of the R package were skipped, or warned" >&2
    tail -n 40 dpreg.Rcheck/tests/testthat.Rout >&2
    exit 1
fi
grep -E '^Status|FAIL' check.log dpreg.Rcheck/tests/testthat.Rout | tail -n 2

if [[ -n ${DPREG_R_DIST:-} ]]; then
    mv dpreg_*.tar.gz "$DPREG_R_DIST"
    exit
fi

cd "$repository"
R CMD INSTALL --no-docs --library="$work/library" "$work"/dpreg_*.tar.gz >"$work/install.log" 2>&1 ||
    { cat "$work/install.log" >&2; exit 1; }
DPREG_R_LIBRARY="$work/library" "$python" -m pytest tests/r_bridge "${@:2}"
