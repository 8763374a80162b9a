"""Language checks of prose, and detection of low quality: tables, dumps, repeated words."""

from __future__ import annotations

import functools
import re

from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import Hashes, Tokens, distinct, ngrams, tokens_of

MIN_SCORE = 0.8  # from this probability on, other guesses do not count
_MAX_BYTES = 2000  # of prose, given to the model; its time is linear in them
_MATHS = re.compile(r"\$[^$]*\$")  # formulas of papers
_NO_LANGUAGE = "zxx"  # numbers and signs: judged by quality rules
_UNCERTAIN = 0.5
_NOT_A_GUESS = 0.2
# Groups of languages that the model can hardly tell apart.
_KIN = (("bs", "hr", "sh", "sr"), ("nb", "nn", "no"), ("id", "ms"), ("wuu", "yue", "zh"))


def language_score(text: str, language: str) -> tuple[float, str, float] | None:
    """Return a language's probability, the likeliest language, and its probability.

    Both are 0 to 1 and include close relatives (Bosnian, Croatian, Serbian; …). None is returned if
    the model does not know the language. The model reads the first 2,000 bytes, without
    ``$maths$``. Only the part of a BCP 47 code before the first hyphen counts.
    """
    own = _names(language.partition("-")[0].lower())
    start = _MATHS.sub(" ", text[: 4 * _MAX_BYTES]).encode()[:_MAX_BYTES]
    ranks = {name: score for name, score in _identifier().rank(start) if name != _NO_LANGUAGE}
    if not own & ranks.keys():
        return None
    best = next(iter(ranks))
    return _sum(ranks, own), best, _sum(ranks, _names(best))


def wrong_language(text: str, language: str) -> tuple[float | None, str | None]:
    """Return a language's probability, and why the text is dropped, or None to keep it."""
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
    """Load the model, once (0.5 s); its use changes no state, so threads may share it."""
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


MIN_LETTERS = 0.5  # share of the visible characters that are letters
MAX_REPEATED = 0.3  # share of 5-grams that repeat an earlier one of the text
MIN_GRAMS = 20  # with fewer 5-grams, repetition is not judged
MAX_LINE_CHARS = 100_000  # longer than any paragraph
MIN_MEAN_LINE_CHARS = 4  # of non-blank lines; a Chinese poem's lines have 5


def low_quality(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    """Return why a prose text is ``low_quality``, or None.

    A text that fails is judged again without its ``$maths$``, for papers full of formulas.
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
