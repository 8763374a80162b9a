"""Shares of simulated worlds in which a figure is right, with their bounds and verdicts."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scipy import stats  # type: ignore[import-untyped]

_CONSERVATIVE = 0.975


@dataclass(frozen=True)
class Kind:
    """Meaning of a share, and the lowest and the highest share that is accepted."""

    name: str
    least: float = 0
    most: float = 1
    may_be_untold: bool = False  # no figure at all is right, too

    @property
    def is_coverage(self) -> bool:
        """Return True if the share is that of intervals with the truth."""
        return self.name.startswith("coverage")


OVER_TIME = Kind("coverage, other months", least=0.93)
OF_DOCUMENTS = Kind("coverage, these months", least=0.93)
# with fewer months before a cutoff than it needs
NEAR_EDGE = Kind("coverage, other months", least=0.93, may_be_untold=True)
TRUE_REASON = Kind("reasons that leave the month out", least=1, may_be_untold=True)
GRADUAL_END = Kind("coverage, last month", least=0.90)  # of a ramp or a hole
GRADUAL_ONSET = Kind("coverage, onset", least=0.85)
NO_EFFECT = Kind("false positives", most=0.06, may_be_untold=True)
FOUND = Kind("worlds with a cutoff")  # the bounds of coverage count these worlds alone
AT_EDGE = Kind('told as "at or after"', least=0.90)
FALSE_ALARM = Kind("worlds with a false alarm", most=0.05)
SEEN = Kind("planted months found", least=0.90)
UNTOLD = Kind("told, but unknowable", most=0, may_be_untold=True)
OF_COMPRESSOR = Kind("told of a compressor", most=0.05)


@dataclass(frozen=True)
class Known:
    """A known exception: the bound that a figure does keep, and why it keeps no better one."""

    bound: float
    reason: str


@dataclass
class Tally:
    """One figure of one kind of world; a hit for each world that has the figure."""

    world: str
    figure: str
    kind: Kind
    hits: list[bool] = field(default_factory=list)
    known: Known | None = None

    @property
    def share(self) -> float:
        """Return the share of hits."""
        return sum(self.hits) / len(self.hits)

    @functools.cached_property
    def wilson(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the share."""
        test = stats.binomtest(sum(self.hits), len(self.hits))
        low, high = test.proportion_ci(method="wilson")
        return float(low), float(high)

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the lowest and the highest accepted share."""
        least, most = self.kind.least, self.kind.most
        if self.known is None:
            return least, most
        return (self.known.bound, most) if least else (least, self.known.bound)

    @property
    def verdict(self) -> str:
        """Return "FAILED" if the whole interval of the share is outside the bounds."""
        if not self.hits:
            return "never told" if self.kind.may_be_untold else "FAILED: never told"
        least, most = self.bounds
        if self.wilson[1] < least or self.wilson[0] > most:
            return "FAILED"
        if self.known:
            return f"known: {self.known.reason}"
        if (least, most) == (0, 1):
            return "no bound"
        if not least <= self.share <= most:
            return "within chance"
        is_wide = self.kind.is_coverage and self.share > _CONSERVATIVE
        return "conservative" if is_wide else "ok"

    @property
    def bound(self) -> str:
        """Return the accepted bound as text; a dash without one."""
        least, most = self.bounds
        return f"≥ {100 * least:g} %" if least else f"≤ {100 * most:g} %" if most < 1 else "–"

    @property
    def row(self) -> str:
        """Return a row of the Markdown table."""
        share = interval = "–"
        if self.hits:
            share = f"{100 * self.share:.1f} %"
            interval = " to ".join(f"{100 * end:.1f}" for end in self.wilson)
        cells = [self.world, self.figure, self.kind.name, str(len(self.hits)), share, interval]
        return f"| {' | '.join([*cells, self.bound, self.verdict])} |"


def table(tallies: Iterable[Tally]) -> Iterator[str]:
    """Yield the lines of a Markdown table, a row for each tally."""
    yield "| world | figure | truth | worlds | share | its 95 % interval | bound | verdict |"
    yield "|---|---|---|--:|--:|---|--:|---|"
    for tally in tallies:
        yield tally.row
