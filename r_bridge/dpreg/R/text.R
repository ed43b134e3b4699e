# Text on its way to Python and into messages. rpy2 asks R for UTF-8, and where R cannot give it, R's
# error would jump over Python's frames: the next call hangs, or R ends. So all text is looked at here.

are_legal <- function(x) {
  mark <- Encoding(x)
  # enc2utf8() would make other text, "<e9>", of what is not the UTF-8 that it claims to be.
  claimed <- mark == "UTF-8" | mark == "unknown" & isTRUE(l10n_info()$`UTF-8`)
  mark != "bytes" & (!claimed | validUTF8(x))
}

legal <- function(x) enc2utf8(x[are_legal(x)])

# Stop unless every text within `x`, names included, is UTF-8 or can be made so.
check_text <- function(x, what) {
  if (!all(are_legal(c(character(), names(x), if (is.character(x)) x)))) {
    dpreg_stop("text_error", what, " holds text that is not valid UTF-8, or whose encoding is marked ",
               '"bytes": ', mend_text, ".")
  }
  if (is.list(x)) for (item in x) check_text(item, what)
}

mend_text <- 'say which encoding it has, as in iconv(x, "latin1", "UTF-8")'

quoted <- function(x, most = 80) {
  x <- readable(x)
  long <- nchar(x) > most
  if (any(long)) x[long] <- paste0(substr(x[long], 1, most - 3), "...")
  paste0("'", x, "'")
}

listed <- function(x) paste(quoted(x), collapse = ", ")

# UTF-8 for a message; of other text the bytes, as R prints them.
readable <- function(x) {
  x <- as.character(x)
  whole <- are_legal(x)
  x[whole] <- enc2utf8(x[whole])
  Encoding(x[!whole]) <- "bytes"
  x[!whole] <- gsub("\\\\", "\\", encodeString(x[!whole]), fixed = TRUE)
  x
}

path_text <- function(path, what) {
  check_text(path, what)
  path.expand(path)
}
