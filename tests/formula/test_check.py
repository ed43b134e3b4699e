"""What the allowlist lets through; all else is refused with a mend before a row is read."""

import contextlib
import pickle
import time

import pytest

from dpreg.errors import DpregError, FormulaError, SchemaError
from dpreg.formula.design import build_design, undeclared
from dpreg.formula.expressions import Expression, Labels, Spline
from dpreg.formula.syntax import read_factor
from dpreg.schema import Schema

SCHEMA = Schema(
    {
        "y": (0, 10),
        "x": (1, 5),
        "z": (-1, 1),
        "g": ["a", "b", "c"],
        "k": {"levels": [1, 2, 3]},
        "flag": bool,
        "with space": (0, 1),
    }
)


class Unread:
    """A table that fails the test as soon as a row is asked for."""

    names = ("y", "x", "z", "g", "k", "flag", "with space", "text", "count", "truth", "when")

    @property
    def rows(self) -> int:
        pytest.fail("the number of rows was looked at")

    def kind(self, name):
        kinds = {"g": "string", "text": "string", "flag": "bool", "truth": "bool"}
        return kinds.get(name, "datetime" if name == "when" else "numeric")

    def chunks(self, columns, size):
        pytest.fail("rows were read")


# factor, a piece of the message that names the factor, a piece of the mend
REFUSED = [
    ("center(x)", "center(x)", "write the column itself"),
    ("standardize(x)", "standardize(x)", "write the column itself"),
    ("scale(x)", "scale(x)", "write the column itself"),
    ("bs(x, df=4)", "bs(x, df=4)", "knots=[2, 5]"),
    ("bs(x, 4)", "bs(x, 4)", "knots=[2, 5]"),
    ("bs(x, knots=[2])", "bs(x, knots=[2])", "lower_bound=0"),
    ("bs(x, knots=[z], lower_bound=1, upper_bound=5)", "bs(x", "literal"),
    ("bs(x, knots=z, lower_bound=1, upper_bound=5)", "bs(x", "public numbers"),
    ("bs(x, knots=[9], lower_bound=1, upper_bound=5)", "bs(x", "inside its bounds"),
    ("bs(x, knots=[2], lower_bound=1, upper_bound=5, degree=2.5)", "bs(x", "whole number"),
    ("bs(x, knots=[2], lower_bound=1, upper_bound=5, degree=-1)", "bs(x", "whole number"),
    ("bs(x, knots=[2], lower_bound=2.5, upper_bound=5)", "bs(x", "inside its bounds"),
    ("2 * bs(x, knots=[2], lower_bound=1, upper_bound=5)", "bs", "arithmetic inside I()"),
    ("I(2 * bs(x, knots=[2], lower_bound=1, upper_bound=5))", "bs", "stand alone"),
    ("cr(x, 3)", "cr(x, 3)", "bs(x, knots="),
    ("cc(x, 3)", "cc(x, 3)", "bs(x, knots="),
    ("te(cr(x, 3), cr(z, 3))", "te(", "bs(x, knots="),
    ("poly(x, 2)", "poly(x, 2)", "I(x**2)"),
    ("np.mean(x)", "np.mean(x)", "public number"),
    ("I(x - np.mean(x))", "np.mean", "public number"),
    ("np.sort(x)", "np.sort(x)", "across rows"),
    ("np.cumsum(x)", "np.cumsum(x)", "across rows"),
    ("max(x)", "max(x)", "public number"),
    ("np.max(x)", "np.max(x)", "public number"),
    ("x - x.mean()", "x.mean()", "np.log"),
    ("I(x - x.mean())", "x.mean()", "np.log"),
    ("x[::-1]", "x[::-1]", "write the column itself"),
    ("x[0]", "x[0]", "write the column itself"),
    ("x.shift(1)", "x.shift(1)", "np.log"),
    ("x.values", "x.values", "np.log"),
    ("outside", "outside", "add it to the schema"),
    ("I(x + outside)", "outside", "add it to the schema"),
    ("SCHEMA", "SCHEMA", "add it to the schema"),
    ("__name__", "__name__", "add it to the schema"),
    ("I((lambda v: v)(x))", "lambda", "no plain name"),
    ("I(lambda v: v)", "lambda", "np.log"),
    ("x.__class__", "x.__class__", "np.log"),
    ("I((q := x))", ":=", "in full"),
    ("I(f'{x}')", "f'", "literal name"),
    ("I([v for v in x])", "[v for v in x]", "np.log"),
    ("I({v for v in x})", "{v for v in x}", "np.log"),
    ("I({1: x})", "{1: x}", "np.log"),
    ("I(v for v in x)", "v for v in x", "np.log"),
    ("np.log(x, out=z)", "np.log(x, out", "np.log(x)"),
    ("np.log(x, where=z > 0)", "np.log(x, where", "np.log(x)"),
    ("np.log(*x)", "np.log", "np.log"),
    ("np.log(**x)", "np.log", "np.log(x)"),
    ("np.log()", "np.log()", "np.log(x)"),
    ("np.log(x, z)", "np.log(x, z)", "np.log(x)"),
    ("np.exp.reduce(x)", "np.exp.reduce", "no plain name"),
    ("np.log10(x)", "np.log10(x)", "np.log(x) / np.log(10)"),
    ("log(x)", "log(x)", "write np.log(x)"),
    ("exp(x)", "exp(x)", "write np.exp(x)"),
    ("sqrt(x)", "sqrt(x)", "write np.sqrt(x)"),
    ("abs(x)", "abs(x)", "write np.abs(x)"),
    ("numpy.log(x)", "numpy.log(x)", "write np.log(x)"),
    ("math.log(x)", "math.log(x)", "write np.log(x)"),
    ("I(x % 2)", "x % 2", "beforehand"),
    ("I(x // 2)", "x // 2", "beforehand"),
    ("I(x @ z)", "I(x@z)", "with *"),
    ("I((x > 1) & (z > 0))", "&", "multiply comparisons"),
    ("I((x > 1) | (z > 0))", "|", "sum of comparisons"),
    ("I(x ^ 2)", "x ^ 2", "**"),
    ("I(x << 2)", "<<", "* 2 **"),
    ("I(~(x > 1))", "x > 1", "turn the comparison around"),
    ("I(not x)", "not x", "turn the comparison around"),
    ("I(x > 1 and z > 0)", "and", "multiply comparisons"),
    ("I(x if x > 1 else z)", "if", "multiply by a comparison"),
    ("1 < x < 3", "1 < x < 3", "(0 < x) * (x < 9)"),
    ("x in z", "x in z", "add up tests"),
    ("x is z", "x is z", "add up tests"),
    ("g > 'a'", "g > 'a'", "g == "),
    ("I(g + 1)", "g + 1", "stand alone"),
    ("np.log(g)", "np.log(g)", "stand alone"),
    ("g > 1", "g > 1", "stand alone"),
    ("g == x", "g == x", "stand alone"),
    ("g == 'q'", "g == ", "declared level"),
    ("k == 7", "k == 7", "declared level"),
    ("x == 'a'", "x == ", "declare its levels"),
    ("I('a')", "'a'", "text may stand in"),
    ("I(x * 1j)", "1j", "numbers such as 2"),
    ("I(x + True)", "True", "numbers such as 2"),
    ("I(x + None)", "None", "numbers such as 2"),
    ("I(x + ...)", "...", "numbers such as 2"),
    ("I(x * 1e999)", "1e999", "smaller number"),
    ("I(x + 1/0)", "1 / 0", "smaller number"),
    ("I(x + (-1)**0.5)", "0.5", "smaller number"),
    ("I(3)", "I(3)", "leave it out"),
    ("np.log(2)", "np.log(2)", "leave it out"),
    ("I(2 > 1)", "2 > 1", "compare a column"),
    ("C(x)", "C(x)", "C(x, levels=[1, 2, 3])"),
    ("C(x, levels=['a', 'b'])", "C(x", "C(x, levels=[1, 2, 3])"),
    ("C(g, levels=['a', 'zz'])", "C(g", "declared levels"),
    ("C(g, levels=['a'])", "C(g", "two different levels"),
    ("C(g, levels=z)", "C(g", "literal list"),
    ("C(g, levels=[z, x])", "C(g", "literal"),
    ("C(g, Helmert)", "Helmert", "Treatment(reference=...) or Sum"),
    ("C(g, Poly([1, 2, 3]))", "Poly", "Treatment(reference=...) or Sum"),
    ("C(g, Treatment('zz'))", "Treatment", "name a level"),
    ("C(g, Treatment(7))", "Treatment", "name a level"),
    ("C(g, Treatment(base='a'))", "Treatment", "it takes reference"),
    ("C(g, Sum(1))", "Sum", "it takes no arguments"),
    ("C(C(g))", "C(C(g))", "stand alone"),
    ("C(g, colour=1)", "colour", "it takes data, contrast, levels"),
    ("C(I(x > 1))", "C(I(x > 1))", "write C(g)"),
    ("C(flag, levels=[0, 5])", "C(flag", "[False, True]"),
    ("I(C(g) * x)", "C(g)", "stand alone"),
    ("I(x, z)", "I(x, z)", "write I(x)"),
    ("I()", "I()", "write I(x)"),
    ("Q(x)", "Q(x)", 'write Q("name")'),
    ("Q('x' + 'y')", "Q(", 'write Q("name")'),
    ("Q('nowhere')", "nowhere", "add it to the schema"),
    (".", "'.'", "name every column"),
    ("eval('x')", "eval(", "np.log"),
    ("exec('x')", "exec(", "np.log"),
    ("__import__('os')", "__import__(", "np.log"),
    ("__import__('os').system('true')", "__import__", "np.log"),
    ("().__class__", "__class__", "arithmetic inside I()"),
    ("I(().__class__.__bases__[0].__subclasses__())", "__subclasses__", "no plain name"),
    ("Q.__globals__", "Q.__globals__", "np.log"),
    ("I.__call__(x)", "I.__call__(x)", "np.log"),
    ("np.__dict__", "np.__dict__", "np.log"),
    ("np.log.__self__", "np.log.__self__", "np.log"),
    ("np.load('x')", "np.load(", "np.log"),
    ("np.random.rand(3)", "np.random.rand", "no plain name"),
    ("getattr(x, 'y')", "getattr(", "np.log"),
    ("globals()", "globals()", "np.log"),
    ("open('/etc/passwd')", "open(", "np.log"),
    ("breakpoint()", "breakpoint()", "np.log"),
    ("print(x)", "print(x)", "np.log"),
    ("type(x)", "type(x)", "np.log"),
    ("Treatment(x)", "Treatment(x)", "np.log"),
    ("dmatrix('x')", "dmatrix(", "np.log"),
    ("I(`x`)", "`x`", "arithmetic inside I()"),
    ("I(x; z)", "I(x;z)", "cannot be read"),
    ("I(await x)", "await x", "np.log"),
    ("I((yield x))", "yield x", "np.log"),
    ("I(x\u0445)", "x\u0445", "add it to the schema"),  # ends in a Cyrillic letter
    ("\u0435xp(x)", "\u0435xp(x)", "np.log"),  # begins with one
    ("_patsy_stobj0__center__.transform(x)", "transform(x)", "np.log"),
]


@pytest.mark.parametrize(("factor", "named", "mend"), REFUSED)
def test_refused_with_a_mend_before_a_row_is_read(factor, named, mend):
    formula = f"y ~ z + {factor}"
    with pytest.raises(FormulaError) as raised:
        build_design(formula, SCHEMA)
    assert named in str(raised.value)
    assert mend in str(raised.value)
    with contextlib.suppress(DpregError):
        undeclared(formula, Schema({}), Unread())


@pytest.mark.parametrize("factor", [row[0] for row in REFUSED if row[0] != "."])
def test_refused_as_a_response_too(factor):
    with pytest.raises(DpregError):
        build_design(f"I({factor}) ~ z", SCHEMA)


ACCEPTED = [
    "x",
    "Q('with space')",
    'Q("with space")',
    "I(x)",
    "I(I(x + z))",
    "I(-x + +z)",
    "I((x + 1) * z / 2 - x ** 2)",
    "np.log(x)",
    "np.log1p(np.abs(z))",
    "np.exp(-z)",
    "np.sqrt(x - 1)",
    "np.log(x) / np.log(10)",
    "x > 2",
    "I(x >= z + 2)",
    "I((x > 2) * (z < 0))",
    "I((g == 'a') + (g == 'b'))",
    "g != 'c'",
    "k == 2",
    "g",
    "k",
    "flag",
    "I(flag * x)",
    "C(g)",
    "C(g, Sum)",
    "C(g, Sum())",
    "C(g, Treatment)",
    "C(g, Treatment('b'))",
    "C(g, Treatment(reference='b'))",
    "C(g, Treatment(-1))",
    "C(g, levels=['c', 'a', 'b'])",
    "C(g, Treatment('b'), ('a', 'b'))",
    "C(k)",
    "C(flag)",
    "C(flag, levels=[True, False])",
    "C(x, levels=[1, 2, 3])",
    "C(fresh, levels=['p', 'q'])",
    "bs(x, knots=[2, 3], lower_bound=1, upper_bound=5)",
    "bs(x, knots=(2,), degree=1, lower_bound=0, upper_bound=6, include_intercept=True)",
    "bs(np.log(x), knots=[1], lower_bound=0, upper_bound=np.log(5))",
    "bs(x, knots=[], lower_bound=1, upper_bound=5)",
]


@pytest.mark.parametrize("factor", ACCEPTED)
def test_accepted(factor):
    if "/" in factor and not factor.startswith("I("):
        factor = f"I({factor})"
    design = build_design(f"y ~ {factor}", SCHEMA)
    assert len(design.columns) > 1
    assert pickle.loads(pickle.dumps(design)) == design


def test_specs_hold_what_was_written():
    assert isinstance(read_factor("x + 1"), Expression)
    assert read_factor("C(g, Treatment('b'), levels=['a', 'b'])") == Labels(
        "g", ("a", "b"), "treatment", "b"
    )
    spline = read_factor("bs(x, knots=[3, 2], degree=2, lower_bound=-1, upper_bound=2 ** 3)")
    assert isinstance(spline, Spline)
    assert (spline.knots, spline.degree, spline.lower, spline.upper) == ((2.0, 3.0), 2, -1.0, 8.0)


@pytest.mark.parametrize(
    "formula",
    [
        "",
        " ",
        "~",
        "y",
        "y ~",
        "~ x",
        "y ~ x ~ z",
        "y + z ~ x",
        "y:z ~ x",
        "1 ~ x",
        "1 + y ~ x",
        "0 ~ x",
        "y ~ 0",
        "y ~ x - x - 1",
        "y ~ x # remark",
        "y ~ 'open",
        'y ~ """open',
        "y ~ x\x00",
        "y ~ \ud800",
        "y ~ x +",
        "y ~ x + 2",
        "y ~ x ** z",
        "y ~ x z",
        "y ~ (x",
        "y ~ x)",
        "y ~ x\\",
        "g ~ x",
        "C(g) ~ x",
        "bs(y, knots=[5], lower_bound=0, upper_bound=10) ~ x",
        None,
        3,
        b"y ~ x",
    ],
)
def test_formulas_that_are_none(formula):
    with pytest.raises(FormulaError):
        build_design(formula, SCHEMA)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ I(9**9**9**9)",
        "y ~ I(x**9**9**9)",
        "y ~ I(x" + "**2" * 400 + ")",
        "y ~ I(" + "9" * 5000 + " * x)",
        "y ~ I(x ** " + "9" * 1000 + ")",
        "y ~ I(" + "-" * 1500 + "x)",
        "y ~ I(" + "-" * 50_000 + "x)",
        "y ~ I(" + "(" * 900 + "x" + ")" * 900 + ")",
        "y ~ I(" + "(" * 40_000 + "x" + ")" * 40_000 + ")",
        "y ~ I(" + "np.exp(" * 200 + "x" + ")" * 200 + ")",
        "y ~ I(" + "x." * 900 + "x)",
        "y ~ I(" + "[" * 900 + "x" + "]" * 900 + ")",
        "y ~ " + "(" * 90_000,
        "y ~ " + "f(" * 30_000,
        "y ~ " + "-" * 90_000 + "x",
        "y" + "~" * 3_000 + "x",
        "y ~ " + "x " * 30_000,
        "y ~ " + ":".join(f"I(x+{i})" for i in range(2_000)),
        "y ~ " + "*".join(f"I(x+{i})" for i in range(60)),
        "y ~ (" + "+".join(f"I(x+{i})" for i in range(40)) + ")**30",
        "y ~ " + "/".join(f"I(x+{i})" for i in range(2_000)),
        "y ~ " + "+".join(f"I(x+{i})" for i in range(10_000)),
        "y ~ " + "+".join(["x"] * 200_000),
        "y ~ " + ":".join(f"C(x, levels={list(range(i, i + 60))})" for i in range(6)),
    ],
    ids=range(24),
)
def test_bombs_are_refused_soon(formula):
    begin = time.process_time()
    with pytest.raises((FormulaError, SchemaError)) as raised:
        build_design(formula, SCHEMA)
    assert time.process_time() - begin < 10
    assert len(str(raised.value)) < 1_000


def test_a_long_sum_is_no_bomb():
    schema = {"y": (0, 1)} | {f"x{i}": (0, 1) for i in range(2_000)}
    design = build_design("y ~ 1 + " + " + ".join(list(schema)[1:]), schema)
    assert [term.name for term in design.terms] == ["Intercept", *list(schema)[1:]]


def test_nothing_of_the_caller_is_seen():
    x = [1, 2, 3]  # noqa: F841 - bait
    np_log = "y"  # noqa: F841 - bait
    with pytest.raises(FormulaError, match="not a declared column"):
        build_design("y ~ x", {"y": (0, 1)})
    with pytest.raises(FormulaError, match="not a declared column"):
        build_design("y ~ np_log", {"y": (0, 1)})


def test_columns_may_bear_the_names_of_functions():
    names = ["np", "C", "I", "Q", "bs", "center", "eval", "Sum"]
    schema = {"y": (0, 1)} | dict.fromkeys(names, (1, 2))
    design = build_design("y ~ np.log(np) + I(I) + Q('Q') + C + bs + center + eval + Sum", schema)
    assert len(design.columns) == 9


def test_a_factor_taken_out_by_a_minus_is_checked_all_the_same():
    with pytest.raises(FormulaError, match="method"):
        build_design("y ~ x - x.mean()", SCHEMA)
    assert [term.name for term in build_design("y ~ x + z - z", SCHEMA).terms] == ["Intercept", "x"]


@pytest.mark.parametrize("parsed", ["I('\\d' == g)", "I(1is x)", "I(0x1for x in y)"])
def test_odd_literals_do_not_warn(parsed):
    with pytest.raises(FormulaError):
        build_design(f"y ~ {parsed}", SCHEMA)


def test_a_factor_longer_than_anyone_means_is_refused_unread():
    with pytest.raises(FormulaError, match="longer than 2000 characters"):
        read_factor("x" + " " * 2000)
    assert isinstance(read_factor("x" + " " * 1999), Expression)
