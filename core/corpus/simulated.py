"""Marks of simulated text: the header of simulated sites, and the licence of sealed items."""

from __future__ import annotations

HEADER = "Tidemark-Simulator"  # response header of each simulated site
# In place of an item's own licence and attribution. The macro ``is_simulated`` has the same text.
LICENCE = "LicenseRef-tidemark-simulator"
ATTRIBUTION = "the simulator of tidemark"


def is_simulated(licence: str) -> bool:
    """Return True if an item with this licence is of a simulated site."""
    return licence == LICENCE
