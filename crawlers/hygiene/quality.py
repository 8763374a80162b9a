"""Prose that is none: tables of numbers, dumps, and the same words over and over."""

from __future__ import annotations

import re

from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import Hashes, Tokens, distinct, ngrams, tokens_of

MIN_LETTERS = 0.5  # share of the visible characters that are letters
MAX_REPEATED = 0.3  # share of the 5-grams that came before in the same text
MIN_GRAMS = 20  # fewer 5-grams say nothing of repetition
MAX_LINE_CHARS = 100_000  # no paragraph is as long
MIN_MEAN_LINE_CHARS = 4  # of the lines that are not blank; a Chinese poem's has 5

_MATHS = re.compile(r"\$[^$]*\$")


def low_quality(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    """Return why a prose text is ``low_quality``, or None.

    A text that fails is judged once more without its ``$maths$``, so that papers may be full of it.

    Args:
        text: cleaned.
        tokens: of the text.
        grams: its word 5-grams, repeats included.
    """
    why = _fault(text, tokens, grams)
    if why and "$" in text:
        text = _MATHS.sub(" ", text)
        tokens = tokens_of(text, is_code=False)
        why = _fault(text, tokens, ngrams(tokens.hashes, SHINGLE))
    return why


def _fault(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    if (share := tokens.num_letters / max(tokens.num_visible, 1)) < MIN_LETTERS:
        return f"{share:.2f} of it are letters, at least {MIN_LETTERS} are needed"
    lengths = [len(line) for line in text.split("\n") if line.strip()]
    if (longest := max(lengths, default=0)) > MAX_LINE_CHARS:
        return f"a line of {longest} characters"
    if (mean := sum(lengths) / max(len(lengths), 1)) < MIN_MEAN_LINE_CHARS:
        return f"{mean:.1f} characters a line"
    if len(grams) >= MIN_GRAMS:
        repeated = 1 - len(distinct(grams)) / len(grams)
        if repeated > MAX_REPEATED:
            return f"{repeated:.2f} of its 5-grams are repeats, at most {MAX_REPEATED} may be"
    return None
