"""Random numbers that depend on what they are for, and on nothing else.

Each puzzle, split and item has a generator of its own, seeded with a hash: whoever makes an item,
in whatever order, makes the same one.
"""

from __future__ import annotations

import hashlib
import json
import random


def seed_of(*parts: str | int) -> int:
    """Return 64 bits that follow from the parts, such as a model, a puzzle and an index."""
    text = json.dumps(parts, ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator_of(*parts: str | int) -> random.Random:
    """Return a random generator that follows from the parts."""
    return random.Random(seed_of(*parts))  # noqa: S311 - no secret: puzzles
