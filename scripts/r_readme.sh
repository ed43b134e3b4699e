#!/usr/bin/env bash
# Do the R package's documents hold for someone who has run the README's commands and nothing else?
#
#     scripts/r_readme.sh            # or: make r-readme
#
# A fresh clone of HEAD, an empty R library and an empty home folder. In them: the commands under
# "Installation" in r_bridge/dpreg/README.md, as they stand there; the code under "An example"; R CMD
# check to its end, with that library and that Python; and the vignette, with the time of each step.
#
# Packages come from the repository that R's option "repos" names. Where it cannot be reached, the
# Debian packages of packages.apt stand in for it: install.packages() then finds them in a folder.
# What only builds, checks and knits (knitr, rmarkdown, ggplot2 for its diamonds) comes from there too,
# in a library of its own, which the commands of the README do not see.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
repository="$PWD"
work="$(mktemp -d)"
trap '[[ -n ${R_README_KEEP:-} ]] || rm -rf "$work"' EXIT
mkdir "$work"/{home,library,tools,none,cran}

# ---- what builds and knits: links to the installed packages, and to those that they need -------------
Rscript --vanilla - "$work" knitr rmarkdown ggplot2 <<'R'
given <- commandArgs(TRUE)
have <- installed.packages()
add <- function(names) {
  need <- tools::package_dependencies(names, have, recursive = TRUE)
  found <- intersect(unique(c(names, unlist(need))), rownames(have)[is.na(have[, "Priority"])])
  setdiff(found, "dpreg")
}
tools_needed <- add(given[-1])
linked <- file.symlink(file.path(have[tools_needed, "LibPath"], tools_needed), file.path(given[1], "tools", tools_needed))
stopifnot(linked)
# R installs what it finds built in a tarball as it is.
place <- file.path(given[1], "cran", "src", "contrib")
dir.create(place, recursive = TRUE)
for (name in add(c("reticulate", "generics"))) {
  tarball <- file.path(place, paste0(name, "_", have[name, "Version"], ".tar.gz"))
  stopifnot(system2("tar", c("-czf", tarball, "-C", have[name, "LibPath"], name)) == 0)
}
tools::write_PACKAGES(place, type = "source")
R

git clone --quiet --no-hardlinks "$repository" "$work/clone"
unset DPREG_PYTHON RETICULATE_PYTHON WORKON_HOME R_LIBS R_PROFILE R_PROFILE_USER VIRTUAL_ENV PYTHONPATH
export HOME="$work/home" R_LIBS_USER="$work/library" LC_ALL=C.UTF-8
# R reads the site's file of settings after this; a folder that holds nothing keeps Debian's packages out.
export R_LIBS_SITE="$work/none" R_ENVIRON=/dev/null
cat >"$HOME/.Rprofile" <<R
local({
  asked <- getOption("repos")
  asked[asked == "@CRAN@"] <- "https://cloud.r-project.org"
  found <- suppressWarnings(tryCatch(nrow(available.packages(repos = asked)), error = function(cond) 0))
  if (!found) {
    message("r_readme.sh: no package repository answers; Debian's packages stand in for it")
    asked <- c(CRAN = "file://$work/cran")
  }
  options(repos = asked)
})
R

# blocks HEADING: the R code under a heading of the README.
blocks() {
    awk -v heading="## $1" '/^## / { on = $0 == heading } on && /^```/ { code = /^```r$/; next } on && code' \
        r_bridge/dpreg/README.md | grep -v '^#>' || true
}
run() { # run NAME FILE [R_LIBS]: run R code, tell how long it took
    local start=$SECONDS
    # shellcheck disable=SC2086 # a file and its arguments
    R_LIBS="${3:-}" Rscript $2 >"$work/log" 2>&1 || { cat "$work/log" >&2; echo "r_readme.sh: $1 failed" >&2; exit 1; }
    echo "== $1: $((SECONDS - start)) s"
}

tools="$work/library:$work/tools"

cd "$work/clone"
blocks Installation >"$work/install.R"
cat "$work/install.R"
run "the README's installation" "$work/install.R"
echo "   in the library now: $(ls "$work/library" | xargs)"

# Code of the README, as it is typed at the prompt. What it says is refused may be, and nothing else.
cat >"$work/typed.R" <<'R'
for (typed in parse(commandArgs(TRUE)[1])) {
  tryCatch(print(eval(typed, globalenv())), dpreg_not_released = function(cond) message(conditionMessage(cond)))
}
R
blocks "An example" >"$work/example.R"
run "the README's example" "$work/typed.R $work/example.R" "$tools"

# ---- the package, built with its vignette, and the time of each step in it ----------------------------
cd "$work"
export _R_CHECK_SYSTEM_CLOCK_=false _R_CHECK_CRAN_INCOMING_=false _R_CHECK_FORCE_SUGGESTS_=false
export DPREG_REQUIRE_PYTHON=1
start=$SECONDS
R_LIBS="$tools" R CMD build clone/r_bridge/dpreg >log 2>&1 || { cat log >&2; exit 1; }
echo "== R CMD build, the vignette included: $((SECONDS - start)) s"
tar -xzf dpreg_*.tar.gz dpreg/inst/doc/dpreg.html
sed -n 's|.*<h2>\(.*\)</h2>.*|   \1|p; s|.*<small>\([0-9.]* s\)</small>.*|      \1|p' dpreg/inst/doc/dpreg.html

# ---- R CMD check, with the README's library alone ------------------------------------------------------
# No network is needed, nor any repository.
export R_REPOSITORIES=NULL R_PROFILE_USER=/dev/null
start=$SECONDS
R CMD check --as-cran --no-manual dpreg_*.tar.gz >log 2>&1 || {
    cat log >&2
    tail -n 60 dpreg.Rcheck/tests/testthat.Rout.fail dpreg.Rcheck/*.out >&2 2>/dev/null || true
    exit 1
}
cat log
echo "== R CMD check: $((SECONDS - start)) s"
