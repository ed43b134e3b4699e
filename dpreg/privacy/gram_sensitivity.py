r"""How much one person's rows can move the released cells of z z', with proofs.

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
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, repeat

from dpreg.errors import ArgumentError
from dpreg.privacy.protection import Protection

__all__ = [
    "CELL_UNITS",
    "Triangle",
    "layout",
    "sensitivity_l1",
    "sensitivity_l2_squared",
]

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
    """

    columns: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    cells: tuple[tuple[int, int], ...]
    _grouped: frozenset[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note which places are in groups."""
        object.__setattr__(self, "_grouped", frozenset(chain.from_iterable(self.groups)))

    @property
    def intercept(self) -> bool:
        """Whether the constant is a column of the model."""
        return bool(self.columns) and self.columns[0] == 0

    @property
    def singles(self) -> int:
        """s: columns outside groups, constant and response included."""
        return len(self.columns) + 1 - sum(len(group) for group in self.groups)

    @property
    def dimension(self) -> int:
        """D = s + G: a factor counts as one."""
        return self.singles + len(self.groups)

    @property
    def most_cells(self) -> int:
        """N: how many cells one row can have that are not zero."""
        full = self.dimension * (self.dimension + 1) // 2
        return full - len(self.groups) if self.intercept else full + 1

    def places(self, cell: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """Return the entries i <= j of the moment matrix that a released cell fills."""
        i, j = cell
        if i == j and i in self._grouped and self.intercept:
            return ((0, i), (i, i))
        return (cell,)


def layout(columns: Sequence[int], exclusive: Sequence[Sequence[int]] = ()) -> Triangle:
    """Lay out the cells that a model's release needs.

    Parameters
    ----------
    columns : sequence of int
        z indices of the model's columns, distinct; 0 (the constant) first when it is among them.
        The response is implied. May be empty.
    exclusive : sequence of sequences of int
        Groups of z indices whose columns are 0/1 with at most one non-zero in a row. Trusted: it
        follows from the formula's coding. Members outside `columns` are ignored.
    """
    columns = tuple(int(j) for j in columns)
    if len(set(columns)) != len(columns) or any(j < 0 for j in columns) or 0 in columns[1:]:
        raise ArgumentError("columns must be distinct z indices with the constant, 0, first")
    place = {column: i for i, column in enumerate(columns)}
    groups = tuple(
        found for group in exclusive if (found := tuple(place[j] for j in group if j in place))
    )
    member: dict[int, int] = {}
    for number, group in enumerate(groups):
        for i in group:
            if i in member or columns[i] == 0:
                raise ArgumentError("exclusive groups must be disjoint and without the constant")
            member[i] = number
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
    return Triangle(columns, groups, tuple(cells))


def sensitivity_l1(triangle: Triangle, protection: Protection) -> Fraction:
    """Return the L1 sensitivity of the released cells, in units of one (see the module)."""
    most = Fraction(triangle.most_cells)
    groups = len(triangle.groups)
    if protection.changes == 2 and groups:
        single = triangle.singles
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
    if response_weight < 1:
        raise ArgumentError("response_weight must be at least 1")
    weight, groups = response_weight, len(triangle.groups)
    total = triangle.dimension - 1 + weight
    squares = (total**2 + triangle.dimension - 1 + weight**2) // 2
    most = squares - groups if triangle.intercept else squares + 1
    if protection.changes == 2:
        most = max(most, total**2 + (0 if triangle.intercept else groups))
    return protection.contributions**2 * most
