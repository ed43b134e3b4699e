# Tests that need Python are skipped where there is none, but fail where DPREG_REQUIRE_PYTHON = 1:
# a check whose tests were all skipped would look like a good one.
need_python <- function(extras = character()) {
  available <- dpreg_available(extras)
  if (available) return(invisible())
  reason <- attr(available, "reason")
  if (identical(Sys.getenv("DPREG_REQUIRE_PYTHON"), "1")) stop(reason, call. = FALSE)
  testthat::skip(reason)
}

# Errands for tests alone: what Python holds of a table, and defaults of its functions.
test_verbs <- function() {
  need_python()
  reticulate::py_run_string("
def _add_test_verbs():
    import inspect
    import time
    import warnings
    import numpy as np
    import dpreg
    from dpreg.cells import kind_of
    from dpreg.errors import DpregWarning
    from dpreg_bridge.formulas import in_r
    from dpreg_bridge.ledgers import charged_to
    from dpreg_bridge.verbs import VERBS, WITH_WORDS
    from dpreg_bridge.words import named_in_lists

    def show(data):
        def column(series):
            missing = series.isna().to_numpy()
            cells = ['' if gone else repr(cell) for cell, gone in zip(series.astype(object), missing)]
            categories = getattr(getattr(series, 'cat', None), 'categories', ())
            return {'kind': kind_of(series.dtype), 'missing': missing.astype(float),
                    'cells': tuple(cells), 'categories': tuple(map(str, categories))}
        return {name: column(data[name]) for name in data.columns}

    def defaults(function):
        parameters = inspect.signature(getattr(dpreg, function)).parameters
        return {name: tuple(p.default) if isinstance(p.default, list) else
                (np.array(p.default) if isinstance(p.default, tuple) and len(p.default) > 1 else
                 p.default[0] if isinstance(p.default, tuple) else p.default)
                for name, p in parameters.items() if p.default is not p.empty}

    def warn(text):
        warnings.warn(text, DpregWarning)
        warnings.warn('row 7 holds 42', RuntimeWarning)
        return 1

    def persons(data):
        from dpreg.columns import PersonId
        from dpreg.sources import as_source
        how = {'id': PersonId(bytes(32))}
        ids = [id for chunk in as_source(data).chunks(how) for id in chunk['id']]
        return tuple('NA' if not any(id.tolist()) else str(id) for id in ids)

    def warn_late(budget):
        warnings.warn('early', DpregWarning)
        charged_to(budget).charge(dpreg.Budget(1), 'a call that warns late', 'replace-one')
        warnings.warn('late', DpregWarning)
        return 1

    def fail(text):
        raise ValueError(text)

    def wait(seconds):
        end = time.time() + seconds
        while time.time() < end:
            pass

    def finalize(seconds):
        class Slow:
            def __del__(self):
                wait(seconds)
        Slow()
        return True

    def echo(data=None, **arguments):
        return arguments

    def public_names():
        return tuple(dpreg.__all__)

    def dataset_names():
        return tuple(name for name in dpreg.datasets.__all__ if name != 'Dataset')

    def drawn(data, estimates, level):
        from dpreg.estimation import inference as law
        values, estimates = data.to_numpy(), np.asarray(estimates, float)
        return {'limits': law.intervals(estimates, values, 1 - level),
                'pvalues': law.pvalues(estimates, values, np.zeros(len(estimates)))}

    def lose_connection():
        from dpreg.privacy.ledger.postgres import LostConnection
        raise LostConnection('gone')

    def hard_text():
        return ('a\\0b', '\\ud800')

    def columns(words, formula, schema):
        found = words.columns(formula, schema).values()
        return {'names': tuple(c.name for c in found), 'terms': tuple(c.term for c in found)}

    WITH_WORDS.update(columns=columns, words=lambda words, text: words.text(text))
    VERBS.update(in_r=in_r, named_in_lists=named_in_lists, drawn=drawn, lose_connection=lose_connection, public_names=public_names, dataset_names=dataset_names,
                 hard_text=hard_text, finalize=finalize, show=show, defaults=defaults, warn=warn, warn_late=warn_late, persons=persons, fail=fail, wait=wait, echo=echo)
_add_test_verbs()
", local = TRUE)
}

car_schema <- list(mpg = c(5, 40), wt = c(1, 6), hp = c(40, 400), gear = list(levels = 3:5),
                   am = logical())
