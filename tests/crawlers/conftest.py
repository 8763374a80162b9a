"""Texts whose right form was marked by hand, and how near an extractor comes to it."""

from __future__ import annotations

import random
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


_WORDS = (
    "the", "of", "and", "in", "a", "was", "with", "from", "that", "for", "on", "by", "the",
    "of", "and", "in", "a", "near", "under", "after", "before", "during", "old", "new",
    "small", "large", "quiet", "heavy", "northern", "local", "public", "early", "late",
    "several", "every", "another", "first", "river", "bridge", "market", "school", "harbour",
    "village", "council", "garden", "engine", "letter", "winter", "summer", "morning",
    "teacher", "farmer", "painter", "sailor", "doctor", "builder", "writer", "visitor",
    "neighbour", "captain", "question", "answer", "carried", "opened", "closed", "painted",
    "built", "described", "measured", "followed", "crossed", "repaired", "sold", "found",
    "slowly", "often", "never", "together", "again", "perhaps", "already", "almost",
    "because", "while", "where", "although", "between",
)  # fmt: skip


def prose(key: object, num_words: int = 60) -> str:
    """Return sentences of English words, the same for the same key; no two keys are alike."""
    rng = random.Random(str(key))
    words = [rng.choice(_WORDS) for _ in range(num_words)]
    sentences = (words[begin : begin + 12] for begin in range(0, num_words, 12))
    return " ".join(" ".join(sentence).capitalize() + "." for sentence in sentences)
