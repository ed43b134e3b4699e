#!/usr/bin/env bash
# Do the R package's documents hold for someone who has run the README's commands and nothing else?
#
#     scripts/r_readme.sh            # or: make r-readme
#
# A fresh clone of HEAD, an empty R library and an empty home folder. In them: the commands under
# "Installation" in r_bridge/dpreg/README.md, as they stand there; the code under "An example"; R CMD
# build with the vignette, and the time of each step in it; R CMD check to its end.
#
# Packages come from the repository that R's option "repos" names. Where it cannot be reached, the
# packages that this machine has (packages.apt) stand in for it, in a folder where install.packages()
# looks for them. R_README_KEEP=1 leaves the temporary folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository="$PWD"
work="$(mktemp -d)"
trap '[[ -n ${R_README_KEEP:-} ]] || rm -rf "$work"' EXIT
mkdir "$work"/{home,library,none}

# ---- a stand-in for CRAN -------------------------------------------------------------------------------
# R installs what it finds built in a tarball as it is. Of the index of maintainers, which R CMD check
# asks for packages that were orphaned, nothing stands in: no remote check is made.
Rscript --vanilla - "$work/cran" <<'R'
place <- commandArgs(TRUE)
have <- installed.packages()
needed <- c("reticulate", "generics", "ggplot2", "knitr", "rmarkdown", "testthat")
needed <- unique(c(needed, unlist(tools::package_dependencies(needed, have, recursive = TRUE))))
shelf <- file.path(place, "src", "contrib")
dir.create(shelf, recursive = TRUE)
for (name in intersect(needed, rownames(have)[is.na(have[, "Priority"])])) {
  tarball <- file.path(shelf, paste0(name, "_", have[name, "Version"], ".tar.gz"))
  stopifnot(system2("tar", c("-czf", tarball, "-C", have[name, "LibPath"], name)) == 0)
}
tools::write_PACKAGES(shelf, type = "source")
dir.create(file.path(place, "web", "packages"), recursive = TRUE)
saveRDS(cbind(Package = character(), Maintainer = character()), file.path(place, "web/packages/packages.rds"))
R

# ---- the newcomer --------------------------------------------------------------------------------------
git clone --quiet --no-hardlinks "$repository" "$work/clone"
unset DPREG_PYTHON RETICULATE_PYTHON WORKON_HOME R_LIBS R_PROFILE R_PROFILE_USER VIRTUAL_ENV PYTHONPATH
export HOME="$work/home" R_LIBS_USER="$work/library" LC_ALL=C.UTF-8
# An empty folder in place of the site's, and no file of the site's settings: both know Debian's packages.
export R_LIBS_SITE="$work/none" R_ENVIRON=/dev/null
cat >"$HOME/.Rprofile" <<R
local({
  asked <- getOption("repos")
  asked[asked == "@CRAN@"] <- "https://cloud.r-project.org"
  found <- suppressWarnings(tryCatch(nrow(available.packages(repos = asked)), error = function(cond) 0))
  if (!found) {
    message("r_readme.sh: no package repository answers; packages of this machine stand in for it")
    asked <- c(CRAN = "file://$work/cran")
  }
  options(repos = asked)
})
R

# blocks HEADING: the R code under a heading of the README.
blocks() {
    awk -v heading="## $1" '/^## / { on = $0 == heading } on && /^```/ { code = /^```r$/; next } on && code' \
        r_bridge/dpreg/README.md | grep -v '^#>'
}
run() { # run NAME FILE...: run R code, tell how long it took
    local start=$SECONDS
    Rscript "${@:2}" >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "r_readme.sh: $1 failed" >&2; exit 1; }
    echo "== $1: $((SECONDS - start)) s"
}

cd "$work/clone"
blocks Installation >"$work/install.R"
cat "$work/install.R"
run "the README's installation" "$work/install.R"

# Code as it is typed at the prompt. What the README says is refused may be, and nothing else.
cat >"$work/typed.R" <<'R'
for (typed in parse(commandArgs(TRUE)[1])) {
  tryCatch(print(eval(typed, globalenv())), dpreg_not_released = function(cond) message(conditionMessage(cond)))
}
R
blocks "An example" >"$work/example.R"
run "the README's example" "$work/typed.R" "$work/example.R"

# ---- the vignette, and R CMD check -----------------------------------------------------------------------
cd "$work"
export DPREG_REQUIRE_PYTHON=1 # a chunk, a test or an example that is skipped for want of Python would look well
export _R_CHECK_SYSTEM_CLOCK_=false _R_CHECK_CRAN_INCOMING_=false R_CRAN_WEB="file://$work/cran"
start=$SECONDS
R CMD build clone/r_bridge/dpreg >log 2>&1 || { cat log >&2; exit 1; }
echo "== R CMD build, the vignette included: $((SECONDS - start)) s; its steps:"
tar -xzf dpreg_*.tar.gz dpreg/inst/doc/dpreg.html
sed -n 's|.*<h2>\(.*\)</h2>.*|   \1|p; s|.*<small>\([0-9.]* s\)</small>.*|      \1|p' dpreg/inst/doc/dpreg.html

start=$SECONDS
_R_CHECK_FORCE_SUGGESTS_=false R CMD check --as-cran --no-manual dpreg_*.tar.gz >log 2>&1 || {
    cat log >&2
    tail -n 60 dpreg.Rcheck/tests/testthat.Rout.fail dpreg.Rcheck/*.out >&2 2>/dev/null || true
    exit 1
}
echo "== R CMD check: $((SECONDS - start)) s"
grep -h -E '\[ FAIL' dpreg.Rcheck/tests/testthat.Rout | tail -n 1
# One note is right: the README has nobody install the packages that tests of methods for them use.
awk '/^\* checking package dependencies \.\.\. NOTE/ { next } /\.\.\. (NOTE|WARNING|ERROR)/ { bad = 1 }
    END { exit bad }' log || { cat log >&2; exit 1; }
grep "^Status" log
