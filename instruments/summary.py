"""The result of a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.corpus.partition import Seal
from core.progress import counted
from crawlers.crawling.manifest import lack_of
from instruments.runner import Failure


@dataclass
class RunSummary:
    """The result of a run. A run with holes is partial; the next run does the missing work.

    A partial partition is not a hole: its available items are sealed and scored, and the next
    run requests the missing items.
    """

    partitions: int = 0
    cells: int = 0
    report: str = ""
    partial: list[str] = field(default_factory=list)  # partitions that lack items, with reasons
    holes: list[str] = field(default_factory=list)

    def add(self, result: Seal | Failure) -> None:
        """Count a crawled month, or add the failure to crawl it."""
        if isinstance(result, Failure):
            self.holes.append(str(result))
            return
        self.partitions += 1
        if result.is_partial:
            self.partial.append(f"{result.partition}: {lack_of(result)}")

    def __str__(self) -> str:
        state = f"partial, {counted(len(self.holes), 'hole')}" if self.holes else "complete"
        partitions = counted(self.partitions, "partition")
        if self.partial:
            partitions += f" ({len(self.partial)} of them partial)"
        return f"{state}: {partitions}, {counted(self.cells, 'cell')}, report {self.report}"
