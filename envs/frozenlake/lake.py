"""The rules of the slippery lake, with exact distances and exact values.

Each move goes in the intended direction with probability 0.8 and otherwise slips to one of the two perpendicular
directions with probability 0.1 each; a move against the edge does not change the cell.  Probabilities are
fractions, so the values of dynamic programming are exact.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property

import attrs

from handoff.errors import DataError

#: The actions in the order of admissible actions, each with its step in (row, column).
MOVES: Mapping[str, tuple[int, int]] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

#: The probability of the intended direction, and of each of the two perpendicular ones.
INTENDED, SLIP = Fraction(8, 10), Fraction(1, 10)
_SLIPS = {"up": ("left", "right"), "down": ("left", "right"), "left": ("up", "down"), "right": ("up", "down")}

#: The discount per move for the policy behind the plans.
HASTE = Fraction(19, 20)

START, FROZEN, HOLE, GOAL = "SFHG"


@attrs.frozen(slots=False)  # the instance caches distances and values
class Lake:
    """A square map of cells: S the start, F frozen, H a hole, G the goal.  Cells are numbered row by row from 0."""

    rows: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not self.rows or any(len(row) != len(self.rows) for row in self.rows):
            raise DataError(f"a lake is a square of cells, not rows of {[len(row) for row in self.rows]}")
        cells = "".join(self.rows)
        if odd := set(cells) - set(START + FROZEN + HOLE + GOAL):
            raise DataError(f"{min(odd)!r} is not a cell of a lake")
        if cells.count(START) != 1 or cells.count(GOAL) != 1:
            raise DataError("a lake has one start and one goal")

    @property
    def size(self) -> int:
        return len(self.rows)

    @cached_property
    def cells(self) -> str:
        return "".join(self.rows)

    @cached_property
    def start(self) -> int:
        return self.cells.index(START)

    @cached_property
    def goal(self) -> int:
        return self.cells.index(GOAL)

    def ended(self, cell: int) -> bool:
        """Whether the cell is a hole or the goal."""
        return self.cells[cell] in (HOLE, GOAL)

    def towards(self, cell: int, word: str) -> int:
        """The cell that a move in the direction ``word`` leads to."""
        (row, column), (down, right) = divmod(cell, self.size), MOVES[word]
        row, column = min(max(row + down, 0), self.size - 1), min(max(column + right, 0), self.size - 1)
        return row * self.size + column

    def directions(self, word: str) -> tuple[tuple[Fraction, str], ...]:
        """The possible directions of a move: (probability, direction), the intended direction first."""
        return (INTENDED, word), (SLIP, _SLIPS[word][0]), (SLIP, _SLIPS[word][1])

    def outcomes(self, cell: int, word: str) -> Mapping[int, Fraction]:
        """The cells that a move from an unfinished ``cell`` may lead to, with their probabilities."""
        return self._outcomes[cell, word]

    @cached_property
    def _outcomes(self) -> Mapping[tuple[int, str], Mapping[int, Fraction]]:
        table = {}
        for cell in range(self.size**2):
            for word in () if self.ended(cell) else MOVES:
                probabilities: dict[int, Fraction] = {}
                for probability, direction in self.directions(word):
                    after = self.towards(cell, direction)
                    probabilities[after] = probabilities.get(after, Fraction(0)) + probability
                table[cell, word] = probabilities
        return table

    @cached_property
    def distances(self) -> Mapping[int, int]:
        """The least number of moves that reach the goal with positive probability, for every cell with such moves."""
        before: dict[int, list[int]] = {}
        for cell in range(self.size**2):
            if not self.ended(cell):
                for word in MOVES:  # the move towards a neighbour reaches it with positive probability
                    before.setdefault(self.towards(cell, word), []).append(cell)
        distances, queue = {self.goal: 0}, deque([self.goal])
        while queue:
            cell = queue.popleft()
            for earlier in before.get(cell, ()):
                if earlier not in distances:
                    distances[earlier] = distances[cell] + 1
                    queue.append(earlier)
        return distances

    # Values

    def horizon_values(self, horizon: int) -> list[Fraction]:
        """The greatest probability, over all policies, of reaching the goal within ``horizon`` moves; one per cell.

        Backward induction: V_0 is 1 at the goal and 0 elsewhere, V_{h+1}(s) = max_a sum_s' P(s'|s,a) V_h(s').
        """
        values = [Fraction(int(cell == self.goal)) for cell in range(self.size**2)]
        for _ in range(horizon):
            values = [
                value if self.ended(cell) else max(self._expected(cell, word, values) for word in MOVES)
                for cell, value in enumerate(values)
            ]
        return values

    @cached_property
    def values(self) -> list[Fraction]:
        """The greatest probability of ever reaching the goal; one per cell."""
        return self._solve(Fraction(1))[0]

    @cached_property
    def policy(self) -> Mapping[int, str]:
        """A move for every unfinished cell from which the goal can be reached: optimal under the discount
        :data:`HASTE` per move.  Without it, to wait for a lucky slip would be as good as to walk."""
        return self._solve(HASTE)[1]

    def _solve(self, discount: Fraction) -> tuple[list[Fraction], Mapping[int, str]]:
        """Policy iteration in exact arithmetic.

        It starts from a policy that reaches the goal with positive probability wherever that is possible, and replaces
        a move only by a strictly better one.  So every policy on the way ends with probability one, and each linear
        system has exactly one solution, without a discount too.
        """
        live = [cell for cell in self.distances if not self.ended(cell)]
        far = self.size**2
        policy = {
            cell: min(MOVES, key=lambda word: min(self.distances.get(a, far) for a in self.outcomes(cell, word)))
            for cell in live
        }
        while True:
            values = self._evaluate(policy, discount)
            better = {}
            for cell in live:
                best = max(MOVES, key=lambda word: self._expected(cell, word, values))
                if discount * self._expected(cell, best, values) > values[cell]:
                    better[cell] = best
            if not better:
                return values, policy
            policy = {**policy, **better}

    def _expected(self, cell: int, word: str, values: Sequence[Fraction]) -> Fraction:
        return sum((p * values[after] for after, p in self.outcomes(cell, word).items()), Fraction(0))

    def _evaluate(self, policy: Mapping[int, str], discount: Fraction) -> list[Fraction]:
        """Solve v(s) = discount sum_s' P(s'|s, policy(s)) v(s') by Gauss-Jordan elimination over fractions."""
        cells = list(policy)
        index = {cell: i for i, cell in enumerate(cells)}
        rows = []
        for cell in cells:
            row = [Fraction(0)] * (len(cells) + 1)
            row[index[cell]] += 1
            for after, probability in self.outcomes(cell, policy[cell]).items():
                if after == self.goal:
                    row[-1] += discount * probability
                elif after in index:
                    row[index[after]] -= discount * probability
            rows.append(row)
        for i in range(len(cells)):
            pivot = next(j for j in range(i, len(cells)) if rows[j][i])
            rows[i], rows[pivot] = rows[pivot], rows[i]
            rows[i] = [x / rows[i][i] for x in rows[i]]
            for j in range(len(cells)):
                if j != i and rows[j][i]:
                    factor = rows[j][i]
                    rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
        values = [Fraction(int(cell == self.goal)) for cell in range(self.size**2)]
        for cell, row in zip(cells, rows, strict=True):
            values[cell] = row[-1]
        return values
