"""A number that moved is found, and put right in its assertion and its sentence alone."""

import importlib.util
from pathlib import Path

_SCRIPT = Path(__file__).parents[1] / "scripts" / "pages_numbers.py"
_spec = importlib.util.spec_from_file_location("pages_numbers", _SCRIPT)
assert _spec
assert _spec.loader
numbers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(numbers)

PAGE = """---
---

# Title

It is 0.42, not 10.42 or 0.421.

```{code-cell}
x = 0.437
```

```{code-cell}
:tags: [remove-cell]
assert f"{x:.2f}" == "0.42" and x < 1
```
"""


def test_a_number_that_moved_is_put_right() -> None:
    pairs = numbers.asserted(PAGE)
    assert pairs == [("0.42", "0.44")]
    page = numbers.rewritten(PAGE, pairs)
    assert "It is 0.44, not 10.42 or 0.421." in page
    assert '== "0.44" and x < 1' in page
    assert numbers.asserted(page) == [("0.44", "0.44")]
