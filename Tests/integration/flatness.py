"""Whether something grows: a slope that a few odd values do not move, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

POINTS_MIN = 6
Z = 3.0  # a series without a trend is said to grow about once in 700 times


@dataclass(frozen=True)
class Slope:
    """Theil and Sen's: the median of the slopes of all pairs of points; `low` and `high` are Kendall's interval."""

    value: float
    low: float
    high: float


def slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """None: there are too few points for an interval."""
    count = len(points)
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if b[0] != a[0])
    if count < POINTS_MIN or not slopes:
        return None
    spread = Z * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, math.floor((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, math.ceil((len(slopes) + spread) / 2))
    return Slope(median(slopes), slopes[low], slopes[high])


def second_half(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """What comes after the warm-up."""
    return points[len(points) // 2 :]
