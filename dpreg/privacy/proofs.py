"""How much one person's rows can move the released cells of z z', with proofs.

A row is the model's z: the constant 1 (with an intercept), its columns, the response last, all in
[-1, 1]; an incomplete row is all zero. Columns of an *exclusive group* are the 0/1 columns of one
factor: at most one of them is not zero. The release holds each distinct cell of sum z z' once:

- i <= j over the model's places, but no two columns of one group (their product is always 0);
- with an intercept no (0, j) for a group column j: x = x^2, so it is the diagonal cell (j, j);
- without an intercept the count of complete rows as well.

Let s count the single columns (constant and response among them), G the groups with at least one
column, D = s + G. Stored rows lie on the grid 2**-20, so cells are integers in units 2**-40, and
the real bounds below hold for them without rounding. `k` rows cost k times as much (triangle
inequality, row by row).

In the proofs z and v are the old and the new row, u = z^2 and w = v^2, e_a and e_b their group
parts (a unit vector or 0); u_g = |e_a|^2. Each record has at most one non-zero cell per pair of
{singles, groups}, so at most N = D(D+1)/2 - G cells with an intercept, N = D(D+1)/2 + 1 without,
all in [-1, 1]. That proves **add-remove**: L1 = N, L2 = sqrt(N); attained by a row of ones with a
level active in each group. The same bounds cover a complete row replaced by an incomplete one. What
remains is a complete row for a complete one:

**L1, G = 0.** Put a_i = |z_i + v_i|/2, b_i = |z_i - v_i|/2: a_i + b_i <= 1 and the cells move by
|z_i z_j - v_i v_j| <= 2 (a_i b_j + b_i a_j), on the diagonal by 4 a_i b_i. The sum over i <= j
is at most 2 A B + 2 sum a_i b_i with A = sum a, B = sum b, A + B <= D, hence at most
D^2/2 + D/2. So L1 = N.

**L1, G >= 1.** Let h groups differ (e_a != e_b), K = G - h agree. A single i moves its cells with a
differing group by at most |z_i| + |v_i| <= 2 max(a_i, b_i) and with an agreeing one by 2 b_i. Pairs
of groups move by at most 2 unless both agree, a differing diagonal by at most 2.
With an intercept the constant (b_0 = 0) has no own cell with a group. If h >= 1, put
m_i = min(a_i, b_i): 2 sum a_i b_i + 2 h sum max(a_i, b_i) <= sum 2 m_i (1 - m_i) + 2 h (1 - m_i),
decreasing in m_i, so at most 2 h S, S the singles that have cells with groups (s - 1 with an
intercept, s without); with 2 A B <= s^2/2 and 2 K sum b_i <= 2 K S the total is at most

    W = s^2/2 + 2 G S + 2 G + G (G - 1).

If h = 0, 2 A B + 2 sum a_i b_i + 2 G B <= 2 B (s + G + 1) - 2 B^2 (1 + 1/S) (Jensen), at most
(s + G + 1)^2 / (2 (1 + 1/S)), which is less than W (expand; G >= 1). So L1 <= max(N, W).

**L2**, with the response weighted: the cell (i, y) counts sqrt(g) times and (y, y) counts g times,
g >= 1 public, as if the response were sqrt(g) y. (Noise of standard deviation sigma / weight in
each cell is then a Gaussian mechanism of ratio L2/sigma.) Let t_i = 1, t_y = g be the largest
squares, T = D - 1 + g their sum. Under add-remove L2^2 is the sum of N cells' largest squares:
(T^2 + D - 1 + g^2)/2, less G with an intercept, plus 1 (the count) without.
For a complete row for a complete one, the squares over i <= j are half of the whole matrix's plus
half of the diagonal's:

    f = 1/2 [(sum u)^2 + (sum w)^2 + sum_singles (u - w)^2 + sum_g |e_a - e_b|^2] - (z'v)^2 - dup

with dup = sum_g |e_a - e_b|^2, the cells (0, j) left out, with an intercept; 0 without.
*With an intercept* the group terms are negative, so f <= 1/2 [(sum u)^2 + (sum w)^2 +
sum (u - w)^2] over D coordinates u_i, w_i in [0, t_i] (groups as one each), a convex function:
largest at a vertex, where turning a pair (t, 0) or (0, t) into (t, t) never lowers it. So
f <= T^2. *Without*, |e_a - e_b|^2 <= u_g + w_g keeps it convex and f <= T^2 + G.
With g = 1 that is L2 = D: attained, for even D, by rows of signs with z'v = 0. (For odd D one could
show sqrt(D^2 - 1); under 1% from D = 8 on.)

How much one person's rows can move the moments of located rows, with proofs.

A *located* row is z = (w, e): w the row's columns in coordinates that earlier looks fixed, shrunk
into a ball |w| <= R, and e its residual in units of its clip, |e| <= 1. An incomplete row is zero.

Integers
--------
What is stored is t = (a, f): a_i is w_i/R in units of 2**-20, truncated towards zero (and lowered
further where need be) so that

    sum_i a_i^2 <= 2**40  as integers,      |f| <= 2**20.

The moments M = sum t t' are integers in units of 2**-40. All bounds below follow from these two
integer inequalities alone; how w, R and e came about does not matter.

The response's weight
---------------------
g > 0 is public, and z_g = (a, sqrt(g) f). A cell (i, j) of M gets noise of scale s/sqrt(h_ij):

    h_ii = 1,   h_ij = 2 (i < j),   h_iy = 2 g,   h_yy = g^2,

each distinct cell being released once. Between neighbours sum over i <= j of h_ij Delta_ij^2 is the
squared Frobenius norm of the change of sum z_g z_g': it counts each off-diagonal cell twice. So
s = D/ratio is a Gaussian mechanism of that ratio, D the sensitivity in the Frobenius norm.

*Statement.* In integer units, for every g > 0 and k rows a person,

    D^2 <= 2 k^2 (1 + g)^2 2**80 under replace-one,
    D^2 <=   k^2 (1 + g)^2 2**80 under add-remove.

*Proof.* |z_g|^2 = |a|^2 + g f^2 <= (1 + g) 2**40. One row added: |z z'|_F = |z|^2. One replaced:

    |z z' - v v'|_F^2 = |z|^4 + |v|^4 - 2 (z'v)^2 <= 2 (1 + g)^2 2**80,

which holds for incomplete rows too. k rows: the triangle inequality, row by row.

*Attained*, for g <= 1 and two columns or more: z = (a, 2**20) and v = (b, -2**20) with
|a| = |b| = 2**20, a'b = g 2**40, so that z_g'v_g = 0. k identical rows replaced by k identical rows
move M by k times as much: the norm costs k, not sqrt(k).

Persons
-------
A unit may be all rows of one person, shrunk by one factor and truncated, so that as integers

    u = sum |a|^2 <= 2**40,      r = sum f^2 <= 2**40      over the person's rows.

*Statement.* Then the bounds above hold with k = 1, however many rows the person owns. So does every
bound on a norm, or another convex function, of the change that one row makes, if it is proved for
all real rows (a, f) whose |a|^2 and f^2 obey public limits, alone or together: for units whose u
and r obey the same.

*Proof.* A unit moves M by Z = sum t t', which is positive semidefinite; u and r are the traces of
its two diagonal blocks. For given u and r all such Z form a compact convex set, and a convex
function on it is largest at an extreme point. That has rank 1 or 0: on the range of a Z of higher
rank the symmetric matrices have three dimensions or more, so that one of them, not zero, has both
traces 0, and a little of it can be added to Z as well as taken away. At rank 1 Z = t t' for a row
with |a|^2 = u and f^2 = r, which is within the limits. Under replace-one take the old unit first,
given the new one, and then the new one. QED

Which g
-------
The error of the normal equations is (noise cells) (theta, -1), theta the coefficients of the stored
columns: per equation s^2/(2 g) + (s^2/2) |theta|^2 and a diagonal term. With s proportional to
1 + g, (1 + g)^2 (1/g + b) is least, b being the expected |theta|^2, where 2 b g^2 + g = 1:

    g = (sqrt(1 + 8 b) - 1)/(4 b) = 2/(1 + sqrt(1 + 8 b)),   in (0, 1].

In the units of w: with B = |theta|^2 there, b = R^2 B, and gamma = R^2 g weighs e beside w. As any
g > 0 is valid, g may be rounded, and the guess b may be wrong.

How much one unit can move what a fitting look releases, with proofs.

A *unit* is one row; or, where the call names persons, all rows of one person, summed before they
are limited. To a fitting look unit i brings integers: rows k whose products are summed, H_i =
sum k k', with tr H_i <= 2**40, and a score f_i with |f_i|^2 <= 2**40, the sum of an inner part a_i
and an outer part b_i whose squares are at most 2**40/(1 + m)^2 and m^2 times that. Nothing else is
asked of them. H_i is positive semidefinite, of any rank. A unit that is excluded is zero.

Released are, over all units and in units of 2**-40, the information H = sum H_i, the score
s = 2**20 sum (m a_i + b_i), beside it the *contrast* c = 2**20 sum (m a_i - b_i), and the middle:
the matrix M = sum f_i f_i', or its trace t = sum |f_i|^2. With Gaussian noise m = 1, and s is the
score. Below, units of one: tr H_i <= 1, |f_i| <= 1, |a_i| <= 1/(1 + m) and |b_i| <= m/(1 + m).

Units
-----
*Statement.* Where persons are named (`dpreg.sources.persons`) neighbours differ by one unit, which
is replaced under replace-one and added or removed under add-remove, however many rows the person
owns and `contributions` keeps. Else they differ by up to k = `contributions` units.
*Proof.* A person's unit is a function of that person's kept rows, and these of that person's rows
alone. A person all of whose rows are excluded is a zero unit. QED

With k units every bound below is k times as large, in whatever norm: the triangle inequality, unit
by unit. j of the k units move it by j/k of that.

Gaussian noise
--------------
A cell gets noise of scale sigma/sqrt(weight), each distinct cell once. Weights of a symmetric
matrix are 1 on the diagonal and 2 off it, so that the weighted sum of squares is the squared
Frobenius norm, which counts each off-diagonal cell twice. Score and contrast have the weight g,
the trace 1.

*Statement (information).* |dH|_F^2 <= 2 under replace-one, 1 under add-remove.
*Proof.* Eigenvalues are at least 0 and sum to at most 1: |H_i|_F <= tr H_i <= 1. One replaced:
|H_i - H_j|_F^2 = |H_i|_F^2 + |H_j|_F^2 - 2 tr(H_i H_j), and the trace of a product of two positive
semidefinite matrices is at least 0. QED

*Statement (score, contrast and middle together).* Let u_i = (f_i, a_i - b_i), and s and c be one
vector of 2 d cells, the sum of u_i. For every g > 0, and for the trace g >= 1,

    g |d(s, c)|^2 + |dM|_F^2 <= (2 + g)^2/2 where g <= 2 and 4 g where g >= 2,  under replace-one,
    g |d(s, c)|^2 + dt^2     <= 4 g                                             under replace-one,
    either                   <= g + 1                                           under add-remove.

*Proof.* As f_i = a_i + b_i, |u_i|^2 = 2 |a_i|^2 + 2 |b_i|^2 <= 1. Add-remove:
|f f'|_F = |f|^2 <= 1. Replace-one, u = (f, f*) by w = (h, h*):

Matrix: f f' is a block of u u', and its change no longer than that of the whole. Let p = u - w and
q = u + w, P = |p|^2 and Q = |q|^2. Then P + Q = 2 v with v = |u|^2 + |w|^2 <= 2, and
p'q = |u|^2 - |w|^2, which is at most 2 - v in modulus, as the larger of the two squares is at
most 1. u u' - w w' = (p q' + q p')/2 has the squared norm (P Q + (p'q)^2)/2, so that the left side
is at most g P + P (2 v - P)/2 + (2 - v)^2/2. That is convex in v, which lies between P/2 and 2. At
v = 2 it is g P + 2 P - P^2/2 with P <= 4: largest at P = 2 + g where g <= 2, else at P = 4, as
stated. At v = P/2 it is g P + (2 - P/2)^2/2, convex in P: at most 2 or 4 g, which are no more.

Trace: let |f| = cos x and |h| = cos y, x and y from 0 to pi/2, so that |f*| <= sin x and
|h*| <= sin y. Then |u - w|^2 <= (cos x + cos y)^2 + (sin x + sin y)^2 = 2 + 2 cos z with z = x - y,
and dt = cos^2 x - cos^2 y = -sin(x + y) sin z, so that dt^2 <= sin^2 z <= 2 (1 - cos z). The left
side is at most 2 g (1 + cos z) + 2 (1 - cos z) <= 4 g. QED

All are attained: by orthogonal H_i of rank one; where f* and h* are 0 by unit vectors f and h
with f'h = -g/2, or -1 where g >= 2 and for the trace; and by k times the same unit replaced by k
times the same other. With g < 1 the trace moves farther, at x = pi/4 + z/2 and y = pi/4 - z/2.

*The score's weight.* Under replace-one g = 2 for the matrix and 1 for the trace: the score gets
the noise that it would have alone, 2/mu, and the contrast and the middle come free. Under
add-remove all move most at once, and what the middle gets the score loses: g = 4 gives the matrix
a fifth of mu^2, and the score 1.12 times the noise that it would have alone; g = 16 the trace, a
single number that is needed to a few percent, a seventeenth, and 1.03 times.

What S/(1 + m) leaves of the score, (s + c)/(2 m), and the rest, (s - c)/2, have 1/(2 m^2) and half
of the variance that s has.

Pure eps
--------
*Statement.* In Euclidean length (s, c), one vector of 2 d cells, moves by at most 4 m/(1 + m) under
replace-one and by half of that under add-remove; t moves by at most 1 under both; and H, and M as
well, by positive semidefinite matrices whose traces sum to at most 2 and 1: one that is added and
one that is taken away, or either.
*Proof.* |(m a + b, m a - b)|^2 = 2 m^2 |a|^2 + 2 |b|^2 <= 4 m^2/(1 + m)^2, and no difference is
longer than both together. |f|^2 is in [0, 1] before and after. tr f f' = |f|^2 <= 1. QED

*Statement.* Outer parts alone, at m = 1, move by at most 1 under replace-one and by half of that
under add-remove: half of (s, c). *Proof.* |b_i| <= 1/2. QED

Matrix-Laplace noise of scale C = c I costs sum tr(C^-1 H_i)/2 over the units that are added or
taken away: the proof in `dpreg.privacy.look_noise` for t t' holds word for word for any
positive semidefinite H_i, with tr(C^-1 H_i) for t'C^-1 t. So it is the trace that has to be
limited. A limit on the Frobenius norm would not do: d orthogonal rows of squared length 1/sqrt(d)
have a Frobenius norm of 1, a trace of sqrt(d), and cost sqrt(d) times as much.

How much one person's rows can move the scores: pure functions, each with its proof.

All arithmetic is in Fractions and integers. Rows are in stored units: the m columns of a row lie
in [-1, 1] and so does the response; the radius is rho, so |beta|_1 <= rho.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import repeat
from typing import Final

from dpreg.privacy.protection import Protection, ScoreRange

CELL_UNITS = 2**40
"""Integer units of one cell: stored values are integers over 2**20, cells over 2**40."""


@dataclass(frozen=True, slots=True)
class Triangle:
    """The distinct cells of a model's moment matrix that are released, each once.

    Parameters
    ----------
    columns : tuple of int
        z indices of the model's d columns, 0 first if there is an intercept.
    groups : tuple of tuples of int
        Exclusive groups as *places* in `columns`.
    cells : tuple of (int, int)
        Released cells (i, j), i <= j, as places; place d is the response. The count of complete
        rows of a model without intercept is (-1, -1), first.
    entries : tuple of tuples of (int, int)
        For each cell the entries (i, j), i <= j, of the moment matrix that it fills: two where a
        factor's column is its own square, and so its product with the constant.
    intercept : bool
        Whether the constant is a column of the model.
    dimension : int
        D = s + G: constant and response are columns, and a factor counts as one.
    """

    columns: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    cells: tuple[tuple[int, int], ...]
    entries: tuple[tuple[tuple[int, int], ...], ...] = field(repr=False)
    intercept: bool
    dimension: int


def layout(columns: Sequence[int], exclusive: Sequence[Sequence[int]] = ()) -> Triangle:
    """Lay out the cells that a model's release needs.

    Parameters
    ----------
    columns : sequence of int
        z indices of the model's columns, distinct; 0 (the constant) first when it is among them.
        The response is implied. May be empty.
    exclusive : sequence of sequences of int
        Disjoint groups of z indices whose columns are 0/1 with at most one non-zero in a row; the
        constant is in none. Trusted: it follows from the formula's coding. Members outside
        `columns` are ignored.
    """
    columns = tuple(int(j) for j in columns)
    place = {column: i for i, column in enumerate(columns)}
    groups = tuple(
        found for group in exclusive if (found := tuple(place[j] for j in group if j in place))
    )
    member = {i: number for number, group in enumerate(groups) for i in group}
    intercept = bool(columns) and columns[0] == 0
    cells: list[tuple[int, int]] = [] if intercept else [(-1, -1)]
    places = range(len(columns) + 1)
    single = [j for j in places if j not in member]
    outside = [[j for j in places if member.get(j) != number] for number in range(len(groups))]
    for i in places:
        if i in member:
            others = outside[member[i]]
            beside = [i, *others[bisect_right(others, i) :]]
        else:
            beside = single if intercept and i == 0 else [*places[i:]]
        cells.extend(zip(repeat(i), beside))
    entries = tuple(
        ((0, i), (i, i)) if i == j and i in member and intercept else ((i, j),) for i, j in cells
    )
    dimension = len(columns) + 1 - sum(len(group) - 1 for group in groups)
    return Triangle(columns, groups, tuple(cells), entries, intercept, dimension)


def sensitivity_l1(triangle: Triangle, protection: Protection) -> Fraction:
    """Return the L1 sensitivity of the released cells, in units of one (see the module)."""
    groups, single = len(triangle.groups), triangle.dimension - len(triangle.groups)
    full = triangle.dimension * (triangle.dimension + 1) // 2
    most = Fraction(full - groups if triangle.intercept else full + 1)
    if protection.changes == 2 and groups:
        crossing = single - 1 if triangle.intercept else single
        both = Fraction(single**2, 2) + 2 * groups * crossing + 2 * groups + groups * (groups - 1)
        most = max(most, both)
    return protection.contributions * most


def sensitivity_l2_squared(
    triangle: Triangle, protection: Protection, response_weight: int = 1
) -> int:
    """Return the squared L2 sensitivity of the released cells, in units of one.

    `response_weight` is g: a cell (i, y) counts sqrt(g) times, the cell (y, y) g times.
    """
    assert response_weight >= 1
    weight, groups = response_weight, len(triangle.groups)
    total = triangle.dimension - 1 + weight
    squares = (total**2 + triangle.dimension - 1 + weight**2) // 2
    most = squares - groups if triangle.intercept else squares + 1
    if protection.changes == 2:
        most = max(most, total**2 + (0 if triangle.intercept else groups))
    return protection.contributions**2 * most


_WEIGHT_UNITS: Final = 2**20


def response_weight(signal: float) -> Fraction:
    """Return g, the response's weight in a located Gaussian look.

    Parameters
    ----------
    signal : float
        b, the squared length of the coefficients that is expected: R^2 times that in units of w
        and of the clip. Public, or read off earlier looks; at least 0.

    Returns
    -------
    Fraction
        2/(1 + sqrt(1 + 8 b)), in units of 2**-20, in (0, 1].
    """
    wanted = 2 / (1 + math.sqrt(1 + 8 * min(signal, 1e30)))
    return Fraction(max(round(wanted * _WEIGHT_UNITS), 1), _WEIGHT_UNITS)


def located_l2_squared(weight: Fraction, protection: Protection) -> Fraction:
    """Return D^2, the squared Frobenius sensitivity of weighted located rows (see the module).

    Parameters
    ----------
    weight : Fraction
        g, above 0.
    protection : Protection
        k is its `contributions`.

    Returns
    -------
    Fraction
        In squared integer units: moments are integers over 2**40.
    """
    assert weight > 0
    k = protection.contributions
    return protection.changes * (k * (1 + Fraction(weight)) * CELL_UNITS) ** 2


def located_weights(size: int, weight: Fraction) -> dict[tuple[int, int], Fraction]:
    """Return h_ij, each released cell's squared weight, (i, j) with i <= j, the response last."""
    last, weight = size - 1, Fraction(weight)
    own, beside, square = (Fraction(1), Fraction(2)), 2 * weight, weight**2
    return {
        (i, j): own[i < j] if j < last else beside if i < last else square
        for i in range(size)
        for j in range(i, size)
    }


SCORE_WEIGHTS: Final = {
    "replace-one": {"matrix": Fraction(2), "trace": Fraction(1)},
    "add-remove": {"matrix": Fraction(4), "trace": Fraction(16)},
}
"""g, the score's weight beside the middle's, by the neighbours (see the module)."""


def information_l2_squared(protection: Protection) -> Fraction:
    """Return the largest |dH|_F^2 between neighbours, in units of one."""
    return Fraction(protection.changes * protection.sums.contributions**2)


def joint_l2_squared(weight: Fraction, middle: str, protection: Protection) -> Fraction:
    """Return the largest g |d(s, c)|^2 + |dM|_F^2, or with dt^2 in its place, between neighbours.

    Parameters
    ----------
    weight : Fraction
        g, at least 1, which the trace under replace-one asks for.
    middle : {"matrix", "trace"}
    protection : Protection

    Returns
    -------
    Fraction
        In units of one.
    """
    assert weight >= 1
    if protection.neighbors != "replace-one":
        unit = weight + 1
    elif middle == "matrix" and weight <= 2:
        unit = (2 + weight) ** 2 / 2
    else:
        unit = 4 * weight
    return unit * protection.sums.contributions**2


def score_l2(protection: Protection, times: int) -> Fraction:
    """Return the largest |d(s, c)| between neighbours, in units of one; `times` is m."""
    unit = Fraction(2 * times, 1 + times)
    return unit * protection.changes * protection.sums.contributions


def trace_l1(protection: Protection) -> Fraction:
    """Return the largest |dt| between neighbours, in units of one."""
    return Fraction(protection.sums.contributions)


GRID_BITS: Final = 24
"""The score grid g is the power of two in (2**-25 w, 2**-24 w], w the range of one row's loss."""

ROUNDING_SLACK: Final = 2
"""Grid units added per changed row for rounding by floor; see `score_range`."""


def loss_range(rho: Fraction) -> Fraction:
    r"""Return w, the range of one row's loss over every model and every coefficient vector.

    Statement
    ---------
    For one row with |x_j| <= 1 and |y| <= 1, and |beta|_1 <= rho, put t = x'beta, so that
    |t| <= rho. The row adds l(t) = t^2 - 2 y t to F_rho (y^2 is common to all models and
    dropped). Then max l - min l <= w with w = (1 + rho)^2 if rho >= 1, else w = 4 rho.

    Proof
    -----
    l is convex in t with its vertex at t = y. Its largest value on [-rho, rho] is at an end:
    rho^2 + 2 |y| rho. If |y| <= rho its least value is -y^2, and the range is
    (rho + |y|)^2, increasing in |y|: at most (1 + rho)^2 if rho >= 1, at most (2 rho)^2 <= 4 rho
    if rho < 1. If |y| > rho (so rho < 1) the least value is at the other end,
    rho^2 - 2 |y| rho, and the range is 4 |y| rho <= 4 rho. Attained at |y| = 1: tight.

    Parameters
    ----------
    rho : Fraction
        Radius in stored units, R / c; positive.

    Returns
    -------
    Fraction
    """
    return (1 + rho) ** 2 if rho >= 1 else 4 * rho


def score_grid(rho: Fraction) -> Fraction:
    """Return g, the power of two with 2**-25 w < g <= 2**-24 w; scores are floor(F / g)."""
    w = loss_range(rho)
    shift = w.numerator.bit_length() - w.denominator.bit_length()
    grid = Fraction(2) ** shift
    if grid > w:
        grid /= 2
    return grid / 2**GRID_BITS


def score_range(rho: Fraction, protection: Protection) -> ScoreRange:
    r"""Bound the range of the changes of all integer scores between neighbours.

    Statement
    ---------
    Let q(M) = floor(F_rho(M) / g) on a data set and q'(M) on a neighbour. Then
    max_M (q'(M) - q(M)) - min_M (q'(M) - q(M)) <= k (ceil(2 w / g) + 2) under replace-one and
    <= k (ceil(w / g) + 2) under add-remove, k = `contributions`. Adding public integers (the
    penalties) to the scores of both changes nothing.

    Proof
    -----
    *One row added.* Let a <= b bound the new row's loss l over all |beta|_1 <= rho, b - a <= w
    (`loss_range`; a and b depend on the row, not on the model). F(M) is a minimum of
    f(beta) over beta supported on M, and f' = f + l, so F(M) + a <= F'(M) <= F(M) + b: the change
    of F is in [a, b] for every M at once. That a itself is unknown does not matter: it is a shift
    common to all models.
    *One row removed.* The same with the two data sets exchanged: changes in [-b, -a].
    *One row replaced.* Remove x, add z: changes in [a_z - b_x, b_z - a_x], of length
    (b_z - a_z) + (b_x - a_x) <= 2w.
    A row that became incomplete, or of an undeclared level, is the zero row: l = 0, a = b = 0.

    *k rows.* Under add-remove k rows are added to or removed from one data set (never exchanged;
    some of both would be a chain of add and remove steps, still k in all). Under replace-one
    up to k of the n rows change their values: k replacements in a chain, each with its own pair
    (old row, new row), hence k times 2w. Ranges add along a chain: the range of a sum is at most
    the sum of the ranges.

    *Floor.* If F' = F + d then floor(F'/g) - floor(F/g) is floor(d/g) or ceil(d/g). With
    d in [u, v], v - u <= W, the integer changes lie in [floor(u/g), ceil(v/g)], whose length is
    an integer below W/g + 2, so at most ceil(W/g) + 1. One unit would do; a second is kept in
    reserve (2^-25 of the whole, at most).

    *Why linear in k.* Each step of the chain passes through a real data set with its own integer
    scores, so the ranges of the k steps add up exactly as they stand. ceil(2 k w / g) + 2 would be
    true as well, but j of the k rows must cost at most j/k of eps where the rows are divided
    between two releases (`dpreg.privacy.budget.in_parallel`), and only the linear form gives that.

    Parameters
    ----------
    rho : Fraction
        Radius in stored units.
    protection : Protection

    Returns
    -------
    ScoreRange
        In units of the grid g of `score_grid`.
    """
    ratio = protection.changes * loss_range(rho) / score_grid(rho)
    one = math.ceil(ratio) + ROUNDING_SLACK
    return ScoreRange(width=protection.contributions * one, protection=protection)
