# Python's words in R's: what an error or a warning of Python's dpreg says of terms, lists and constants.

in_r_words <- function(text, labels = NULL) {
  for (code in names(labels)[order(-nchar(names(labels)))]) {
    text <- gsub(paste0("'", code, "'"), quoted(labels[[code]]), text, fixed = TRUE)
  }
  for (i in seq_len(nrow(r_words))) text <- gsub(r_words[i, 1], r_words[i, 2], text, perl = TRUE)
  text
}

r_words <- matrix(byrow = TRUE, ncol = 2, c(
  "^factor (?=')", "term ",
  # What to install and to call.
  "(?:run )?`?pip install '?dpreg\\[(\\w+)\\]'?`?",
  "run dpreg::install_dpreg(\"path/to/dpreg\", extras = \"\\1\") and restart R",
  "\\bLedger\\(cap, (path|url)\\)", "dp_ledger(\\1, eps)",
  "as `Ledger\\.head` and `dpreg ledger show` print it", "as verify_ledger() tells it",
  "`dpreg ledger (adopt|verify)( --head| --witness)?`", "\\1_ledger()",
  "\\bby (analyst|witness)=(?!\\w)", "by \\1 = ",
  "\\bwhere=(?=['\"])", "subset = ",
  "budget=Ledger\\(\\.\\.\\.\\)", "budget = dp_ledger(...)",
  # What summary() calls its columns.
  "\\bP>\\|z\\|", "Pr(>|z|)", "\\bcoef\\b(?!\\()", "Estimate", "\\bstd err\\b", "Std. Error",
  "\\bdpreg\\.plan\\(", "dp_plan(", "\\bdpreg\\.(?=[A-Z])", "",
  # Terms.
  "\\bC\\((\\w+), levels=\\[([^]]*)\\]\\)", "factor(\\1, levels = c(\\2))",
  "\\bC\\((\\w+)\\)", "factor(\\1)",
  "\\bnp\\.(log|log1p|exp|sqrt|abs)\\b", "\\1",
  " \\*\\* ", "^",
  # Lists.
  "shares\\['(\\w+)'\\]", "shares$\\1",
  "\\{['\"](\\w+)['\"]: \\{\"levels\": \\[([^]]*)\\]\\}\\}", "list(\\1 = list(levels = c(\\2)))",
  "\\{\"levels\": \\[([^]]*)\\]\\}", "list(levels = c(\\1))",
  "\\{['\"](\\w+)['\"]: [(\\[]([^])]*)[)\\]]\\}", "list(\\1 = c(\\2))",
  "'(\\w+)': \\[\"level\", \\.\\.\\.\\]", "\\1 = c(\"level\", ...)",
  "\\[(\"level\", \\.\\.\\.|False, True|True, False|\"a\", \"b\")\\]", "c(\\1)",
  "(?<!c)\\((lowest, highest)\\)", "c(\\1)",
  "\\bdeclare it as \\(0, 1\\)", "declare it as c(0, 1)",
  "a mapping of column names to such pairs", "a list of such pairs by column",
  "a mapping of column names to", "a named list of",
  "\\ba tuple of\\b", "a vector of",
  "\\ba DataFrame\\b", "a data frame",
  "must be a number, not list\\b", "must be one number, not several",
  # Constants and types.
  "\\bTrue\\b", "TRUE", "\\bFalse\\b", "FALSE", "\\bNone\\b(?! of)", "NULL",
  "\\bbool\\b", "logical()", "\\bfloat64\\b", "double precision", "\\ban integer\\b", "a whole number",
  "\\b([a-z_]+)=(?=[\"'0-9A-Z]|[.]{3})", "\\1 = "
))
