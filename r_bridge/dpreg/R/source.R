# Tables that are no data frames: paths of files, which Python opens, and tables of the arrow package,
# which travel as Arrow streams within the process. Python keeps each open under a number, and tells
# its public names and kinds.

is_source <- function(data) {
  is.character(data) && length(data) > 0 || inherits(data, arrow_classes)
}

arrow_classes <- c("ArrowTabular", "Dataset", "RecordBatchReader", "arrow_dplyr_query")

# The number, and a data frame without rows that has the columns' names and kinds.
open_source <- function(data) {
  arguments <- if (is.character(data)) {
    if (anyNA(data)) dpreg_stop("argument_error", "data must not be NA.")
    # Several texts may be a column's cells.
    absent <- if (length(data) > 1) which(!file.exists(path_text(data, "data")) & !grepl("[*?[]", data))
    if (length(absent)) {
      dpreg_stop("data_error", "data has ", length(data), " texts, the paths of files, and there is no file for number ",
                 absent[1], ".")
    }
    list(paths = as.list(path_text(data, "data")))
  } else {
    list(stream = export_stream(data), whole = inherits(data, "ArrowTabular"))
  }
  told <- python_call("open_source", arguments)
  prototypes <- lapply(told$kinds, function(kind) {
    switch(kind, string = , object = character(), category = factor(), bool = logical(), numeric())
  })
  list(number = told$source,
       columns = as.data.frame(stats::setNames(prototypes, told$names), optional = TRUE, stringsAsFactors = FALSE))
}

# What `use` makes of a table, and of its source where R has no rows of it, which is open until then.
with_table <- function(data, use) {
  source <- NULL
  if (is_source(data)) {
    source <- open_source(data)
    on.exit(python_call("close_source", list(source = source$number)))
    data <- source$columns
  }
  if (!is.data.frame(data)) {
    dpreg_stop("argument_error", "data must be a data frame (a tibble and a data.table are), the path of a ",
               "Parquet or CSV file, or a table of the package arrow; got an object of class ",
               quoted(class(data)[1]), ".")
  }
  use(data, source)
}

# Python makes room for the stream; arrow writes it there, without copying a row.
export_stream <- function(data) {
  if (!inherits(data, "RecordBatchReader")) {
    # Who holds such a table has arrow, which this package does not ask for.
    as_reader <- tryCatch(getExportedValue("arrow", "as_record_batch_reader"), error = function(cond) {
      dpreg_stop("argument_error", "an object of class ", quoted(class(data)[1]), " needs the R package ",
                 "arrow, version 8 or later.")
    })
    data <- as_reader(data)
  }
  address <- python_call("new_stream")
  data$export_to_c(address)
  address
}
