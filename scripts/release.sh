#!/usr/bin/env bash
# Build what a release consists of, and check each part where nothing else of dpreg is.
#
#     scripts/release.sh             # or: make release
#
# HEAD is cloned; the tree has to be clean. dist/ then holds the source archive, the wheel made of it,
# the conda recipe (and the package, where the channel CONDA_CHANNEL has all dependencies), the R
# package, a bill of materials and checksums. Packages come from the index that pip is set up with;
# what is installed is then run without a network, and without a variable or folder of this checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository="$PWD"
die() { echo "release.sh: $*" >&2; exit 1; }
say() { echo "== $* ($((SECONDS / 60)) min)"; }
python="$(command -v "${PYTHON:-python3}")"
[[ -z $(git status --porcelain) ]] || die "the tree is not clean: commit first, what is released is HEAD"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work"/{dist,home,empty,library}
git clone --quiet --no-hardlinks "$repository" "$work/clone"
version="$(sed -n 's/^version = "\(.*\)"$/\1/p' "$work/clone/pyproject.toml")"
SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
export SOURCE_DATE_EPOCH

# ---- the Python archives -----------------------------------------------------------------------
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --quiet --no-input --require-hashes -r locks/release.txt
"$work/tools/bin/python" -m build --outdir "$work/dist" "$work/clone" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
sdist="$work/dist/dpreg-$version.tar.gz"
wheel="$work/dist/dpreg-$version-py3-none-any.whl"
say "built $(basename "$sdist") and $(basename "$wheel")"

# fresh NAME WHAT...: an environment of its own with what a user gets today, no pins.
fresh() {
    "$python" -m venv --without-pip "$work/$1"
    RPY2_CFFI_MODE=ABI PIP_CONSTRAINT='' "$work/tools/bin/python" -m pip --python "$work/$1/bin/python" \
        install --quiet --quiet --no-input "${@:2}"
}
# alone COMMAND...: run it in the empty folder, without a network where unshare may be used.
cut=()
unshare --net true 2>/dev/null && cut=(unshare --net)
alone() {
    (cd "$work/empty" && "${cut[@]}" env -i PATH="$PATH" HOME="$work/home" LC_ALL=C.UTF-8 MPLBACKEND=agg \
        OPENBLAS_NUM_THREADS=1 "$@") >"$work/log" 2>&1 ||
        { tail -n 60 "$work/log" >&2; die "failed: $*"; }
}
# blocks LANGUAGE FILE [HEADING]: the code of a page, or what stands under one heading of it.
blocks() {
    awk -v fence="\`\`\`$1" -v heading="${3:-}" '!code && /^## / { on = $0 == "## " heading }
        (on || heading == "") && /^```/ { code = $0 == fence; next } (on || heading == "") && code' "$2" | grep -v '^#>'
}
empty() { rm -rf "$work/empty" && mkdir "$work/empty"; }

fresh wheel "$wheel[plot,arrow]"
"$work/tools/bin/cyclonedx-py" environment "$work/wheel/bin/python" --pyproject "$work/clone/pyproject.toml" \
    --mc-type library --output-reproducible --of JSON -o "$work/dist/dpreg-$version.cdx.json" 2>"$work/log" ||
    { cat "$work/log" >&2; exit 1; }
say "wrote the bill of materials"

{
    echo "import dpreg; assert dpreg.__version__ == '$version', dpreg; assert dpreg.__file__.startswith('$work/wheel/'), dpreg"
    blocks python README.md
} >"$work/readme.py"
alone "$work/wheel/bin/python" "$work/readme.py"
alone "$work/wheel/bin/dpreg" ledger verify ledger.db --result fit.json
say "the wheel alone runs the README and verifies its ledger"

empty
"$work/tools/bin/python" -m pip --python "$work/wheel/bin/python" install --quiet --quiet --no-input nbconvert ipykernel
cp "$work/clone/examples/first_hour.ipynb" "$work/empty"
# The kernel listens on the loopback of its own.
alone bash -c "ip link set lo up 2>/dev/null || true; PATH=$work/wheel/bin:\$PATH jupyter nbconvert --execute --to notebook --inplace first_hour.ipynb"
grep -q 'spent of eps=20' "$work/empty/first_hour.ipynb" || die "the notebook did not print its last line"
say "the wheel alone runs the notebook in Jupyter"

empty
fresh sdist "$sdist"
cp "$work/clone/examples/demo.py" "$work/empty"
alone "$work/sdist/bin/python" -W error demo.py
grep -q 'Private variable selection: mdvis' "$work/log" || die "the demo printed no summary"
say "the source archive alone runs the demo"

# ---- conda -------------------------------------------------------------------------------------
"$work/tools/bin/python" "$work/clone/scripts/conda_recipe.py" "$sdist" "$work/dist/recipe.yaml" ${CONDA_CHANNEL:+"$CONDA_CHANNEL"}

# ---- R -----------------------------------------------------------------------------------------
# R CMD build knits the vignette, and R CMD check --as-cran runs everything, by the installed wheel.
fresh r "${wheel}[r,arrow]"
DPREG_R_DIST="$work/dist" "$work/clone/scripts/r_check.sh" "$work/r/bin/python"
tarball="$work/dist/dpreg_$version.tar.gz"
say "R CMD check --as-cran of $(basename "$tarball") is OK"

# A newcomer: an empty library and home, the wheel by install_dpreg(), the README and the vignette.
empty
R CMD INSTALL --library="$work/library" "$tarball" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
R_LIBS="$work/library" HOME="$work/home" PIP_CONSTRAINT='' Rscript -e \
    "dpreg::install_dpreg('$wheel', python = '$python')" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
{
    echo "stopifnot(startsWith(find.package('dpreg'), '$work/library'))"
    # As typed at the prompt: what the README says is refused may be, and nothing else.
    echo "for (typed in parse('$work/readme.R')) tryCatch(print(eval(typed, globalenv())),"
    echo "  dpreg_not_released = function(cond) message(conditionMessage(cond)))"
    echo "rmarkdown::render(system.file('doc', 'dpreg.Rmd', package = 'dpreg'), output_dir = '.', quiet = TRUE)"
} >"$work/newcomer.R"
blocks r r_bridge/dpreg/README.md 'An example' >"$work/readme.R"
alone env R_LIBS="$work/library" DPREG_REQUIRE_PYTHON=1 Rscript "$work/newcomer.R"
[[ -s $work/empty/dpreg.html ]] || die "the vignette was not knitted"
say "the R package alone runs its README and its vignette"

# ---- what is handed over -----------------------------------------------------------------------
(cd "$work/dist" && rm -f .gitignore && sha256sum -- * >"$work/SHA256SUMS")
rm -rf dist
mv "$work/dist" dist
mv "$work/SHA256SUMS" dist/
say "dist/ holds the release of $(git rev-parse --short HEAD)"
cat dist/SHA256SUMS
