"""Texts whose right form was marked by hand, and how near an extractor comes to it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

MARKED = Path(__file__).parent / "marked"


def token_f1(found: str, right: str) -> float:
    """Return the F1 of the tokens (words, and single signs) that two texts share, as multisets."""
    bags = [Counter(re.findall(r"\w+|[^\w\s]", text)) for text in (found, right)]
    num_common = sum((bags[0] & bags[1]).values())
    return 2 * num_common / (sum(bags[0].values()) + sum(bags[1].values()))


def marked(source: str) -> list[tuple[Path, str]]:
    """Return the documents of ``marked/<source>``: the raw file and its right text.

    ``01.html`` (or .wikitext, .tex, .json …) is as the site gives it, ``01.expected.txt`` is what a
    careful reader would take out of it.
    """
    folder = MARKED / source
    texts = sorted(folder.glob("*.expected.txt"))
    if len(texts) < 10:
        pytest.fail(f"{folder} has {len(texts)} marked documents; expected at least 10")
    pairs = []
    for text in texts:
        stem = text.name.removesuffix(".expected.txt")
        [raw] = [path for path in folder.glob(f"{stem}.*") if path != text]
        pairs.append((raw, text.read_text(encoding="utf-8")))
    return pairs
