"""Checks of prose for a wrong language and low quality: tables, data dumps, repeated words."""

from __future__ import annotations

import functools
import re

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import Hashes, Tokens, distinct, ngrams, tokens_of

MIN_SCORE = 0.8  # a text is kept if its language has at least this probability
_MAX_BYTES = 2000  # bytes of a text that the language model reads; its time is linear in them
_MATHS = re.compile(r"\$[^$]*\$")  # formulas in papers
_NO_LANGUAGE = "zxx"  # the model's code for texts without words; ``low_quality`` drops them
_UNCERTAIN = 0.5
_NOT_A_GUESS = 0.2
# Groups of languages that the language model can hardly tell apart.
_KIN = (("bs", "hr", "sh", "sr"), ("nb", "nn", "no"), ("id", "ms"), ("wuu", "yue", "zh"))


def language_score(text: str, language: str) -> tuple[float, str, float] | None:
    """Return (probability of ``language``, likeliest language, probability of the likeliest).

    A probability (0 to 1) is the sum over closely related languages (such as Bosnian and Serbian).
    Return None if the model does not know the language. The model reads the first 2,000 bytes,
    without ``$maths$``. Of ``language`` (BCP 47), only the part before the first hyphen is used.
    """
    own = _names(language.partition("-")[0].lower())
    start = _MATHS.sub(" ", text[: 4 * _MAX_BYTES]).encode()[:_MAX_BYTES]
    ranks = {name: score for name, score in _identifier().rank(start) if name != _NO_LANGUAGE}
    if not own & ranks.keys():
        return None
    best = next(iter(ranks))
    return _sum(ranks, own), best, _sum(ranks, _names(best))


def wrong_language(text: str, language: str) -> tuple[float | None, str | None]:
    """Return a language's probability (None: unknown), and why to drop the text (None: keep it)."""
    found = language_score(text, language)
    if found is None:
        return None, None
    score, best, best_score = found
    is_uncertain = best_score < _NOT_A_GUESS or score >= _UNCERTAIN * best_score
    if score >= MIN_SCORE or is_uncertain:
        return score, None
    return score, f"{language} at {score:.2f}, {best} at {best_score:.2f}"


def _names(language: str) -> frozenset[str]:
    return frozenset(next((kin for kin in _KIN if language in kin), (language,)))


def _sum(ranks: dict[str, float], languages: frozenset[str]) -> float:
    return min(1.0, sum(ranks.get(name, 0.0) for name in languages))


@functools.cache
def _identifier() -> LanguageIdentifier:
    """Load the language model once (0.5 s); it has no changing state, so threads may share it."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


MIN_LETTERS = 0.5  # minimum share of letters among visible characters
MAX_REPEATED = 0.3  # maximum share of 5-grams that repeat an earlier 5-gram of the text
MIN_GRAMS = 20  # with fewer 5-grams, repetition is not judged
MAX_LINE_CHARS = 100_000  # maximum line length; paragraphs of prose are shorter
MIN_MEAN_LINE_CHARS = 4  # minimum mean length of non-blank lines; lines of Chinese poems have 5


def low_quality(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    """Return why a prose text has low quality, or None if it has not.

    A text that fails is judged again without its ``$maths$``: papers may be full of formulas.
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
