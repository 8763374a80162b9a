"""Checks of prose for a wrong language and low quality: tables, data dumps, repeated words."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlers.hygiene.signatures import SHINGLE
from crawlers.hygiene.tokens import Hashes, Tokens, distinct, ngrams, tokens_of

MIN_SCORE = 0.8  # a text is kept if its language has at least this probability
_MAX_BYTES = 2000  # bytes of a text that the language model reads; its time is linear in them
_MATHS = re.compile(r"\$[^$]*\$")  # formulas in papers
_NO_LANGUAGE = "zxx"  # the model's code for texts without words; ``low_quality`` drops them
_UNCERTAIN = 0.5  # a language this fraction as likely as the likeliest may be the right one
_NOT_A_GUESS = 0.2  # below this probability, the likeliest language says nothing
# Groups of languages that the language model can hardly tell apart.
_KIN = (("bs", "hr", "sh", "sr"), ("nb", "nn", "no"), ("id", "ms"), ("wuu", "yue", "zh"))


Ranks = Mapping[str, float]  # probability of each language that the model knows


def rank_languages(texts: Sequence[str]) -> list[Ranks]:
    """Return the probability of each language for each text; quick for hundreds at a time."""
    # The model reads the first 2,000 bytes, without ``$maths$``. Texts without words have none.
    return _model().rank([_MATHS.sub(" ", text[: 4 * _MAX_BYTES]) for text in texts])


def evidence(texts: Sequence[str]) -> list[float]:
    """Return how clearly each text is in one language, whichever it is.

    The figure is the likeliest language's lead over the mean of all languages, in nats a byte. Most
    texts of 400 characters have 1.9 to 3. Texts in a language that the model does not know have
    about 1, and signs without words 0.1 to 0.8. The model reads the first 2,000 bytes.
    """
    return _model().evidence(texts)


def language_score(ranks: Ranks, language: str) -> tuple[float, str, float] | None:
    """Return (probability of ``language``, likeliest language, probability of the likeliest).

    A probability (0 to 1) is the sum over closely related languages (such as Bosnian and Serbian).
    Return None if the model does not know the language. Of ``language`` (BCP 47), only the part
    before the first hyphen is used.
    """
    own = _with_kin(language.partition("-")[0].lower())
    if not own & ranks.keys():
        return None
    best = max(ranks, key=ranks.__getitem__)
    return _sum(ranks, own), best, _sum(ranks, _with_kin(best))


def wrong_language(ranks: Ranks, language: str) -> tuple[float | None, str | None]:
    """Return a language's probability (None: unknown), and why to drop the text (None: keep it)."""
    found = language_score(ranks, language)
    if found is None:
        return None, None
    score, best, best_score = found
    is_uncertain = best_score < _NOT_A_GUESS or score >= _UNCERTAIN * best_score
    if score >= MIN_SCORE or is_uncertain:
        return score, None
    return score, f"{language} at {score:.2f}, {best} at {best_score:.2f}"


def _with_kin(language: str) -> frozenset[str]:
    """Return a language, and those that the identifier often takes for it."""
    for kin in _KIN:
        if language in kin:
            return frozenset(kin)
    return frozenset([language])


def _sum(ranks: Ranks, languages: frozenset[str]) -> float:
    return min(1.0, sum(ranks.get(name, 0.0) for name in languages))


class _LanguageModel:
    """The model of py3langid, read in step for many texts; probabilities equal the library's.

    The library walks through a text byte by byte in Python, which took half of the time of
    hygiene. Here, numpy does one step of all texts at once. Threads may share a model.
    """

    def __init__(self, identifier: LanguageIdentifier) -> None:
        self._next = np.asarray(identifier.tk_nextmove)  # state by row and byte
        self._rows = np.asarray(identifier.tk_row, dtype=np.int64) * 256
        self._features = np.asarray(identifier.tk_output, dtype=np.int32)  # by state; -1: none
        self._weights = identifier.nb_ptc.astype(np.float32)  # exact: they are of 16 bits
        self._priors = identifier.nb_pc
        labels = identifier.nb_classes
        # Scripts of a language are classes with the same label, whose probabilities are added.
        self._labels = list(dict.fromkeys(labels))
        self._columns = [labels.index(label) for label in self._labels]
        each = [(labels.index(label), column) for column, label in enumerate(labels)]
        self._aliases = [(first, column) for first, column in each if first != column]

    def rank(self, texts: Sequence[str]) -> list[Ranks]:
        """Return the probability of each language for each text."""
        packed = [_pack(text) for text in texts]
        return [
            self._ranks(visits, len(each))
            for visits, each in zip(self._visits(packed), packed, strict=True)
        ]

    def _visits(self, packed: Sequence[bytes]) -> Iterator[Counter[int]]:
        """Yield how often each text has each feature, in the order of their first bytes."""
        longest = max(map(len, packed), default=0)
        letters = np.zeros((longest, len(packed)), dtype=np.uint8)
        for column, each in enumerate(packed):
            letters[: len(each), column] = np.frombuffer(each, dtype=np.uint8)
        states = np.zeros((longest + 1, len(packed)), dtype=self._next.dtype)
        for place, row in enumerate(letters):
            states[place + 1] = self._next[self._rows[states[place]] + row]
        features = self._features[states[1:].T]
        for each, found in zip(packed, features, strict=True):
            found = found[: len(each)]
            yield Counter(found[found >= 0].tolist())

    def evidence(self, texts: Sequence[str]) -> list[float]:
        """Return by how much each text's likeliest class exceeds the mean, in nats a byte."""
        packed = [_pack(text) for text in texts]
        found = []
        for visits, each in zip(self._visits(packed), packed, strict=True):
            scores = self._likelihoods(visits)
            found.append(float(scores.max() - scores.mean()) / max(len(each), 1))
        return found

    def _likelihoods(self, visits: Counter[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Return the logarithm of each class's likelihood, up to a constant."""
        if not visits:
            return np.zeros(len(self._priors), dtype=np.float32)
        counts = np.fromiter(visits.values(), dtype=np.float32, count=len(visits))
        found = np.fromiter(visits, dtype=np.intp, count=len(visits))
        weights = np.take(self._weights, found, axis=0)  # twice as quick as an index
        scores: np.ndarray[Any, np.dtype[np.float32]] = np.log1p(counts) @ weights
        return scores

    def _ranks(self, visits: Counter[int], num_bytes: int) -> Ranks:
        """Return the probability of each language of a text with these features."""
        scores = self._likelihoods(visits)
        if visits:
            scores += self._priors
        # The library scales log-likelihoods like this, so that long texts keep some doubt.
        scores *= 1.0 / math.sqrt(num_bytes or 1)
        np.exp(scores - scores.max(), out=scores)
        scores /= scores.sum()
        # Add the probabilities of the scripts of one language.
        for first, again in self._aliases:
            scores[first] += scores[again]
        ranks = dict(zip(self._labels, scores[self._columns].tolist(), strict=True))
        del ranks[_NO_LANGUAGE]
        return ranks


def _pack(text: str) -> bytes:
    """Return the bytes that the library would read of a text."""
    text = text.encode()[:_MAX_BYTES].decode(errors="ignore")
    return unicodedata.normalize("NFC", text.lower() if text.isupper() else text).encode()


@functools.cache
def _model() -> _LanguageModel:
    """Load the language model once (0.5 s)."""
    return _LanguageModel(LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True))


MIN_LETTERS = 0.5  # minimum share of letters among visible characters
MAX_REPEATED = 0.3  # maximum share of 5-grams that repeat an earlier 5-gram of the text
MIN_GRAMS = 20  # with fewer 5-grams, repetition is not judged
MAX_LINE_CHARS = 100_000  # maximum line length; paragraphs of prose are shorter
MIN_MEAN_LINE_CHARS = 4  # minimum mean length of non-blank lines; lines of Chinese poems have 5


def low_quality(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    """Return why a prose text has low quality, or None if it has not."""
    # A text that fails is judged again without its ``$maths$``: papers may be full of formulas.
    why = _fault(text, tokens, grams)
    if why and "$" in text:
        text = _MATHS.sub(" ", text)
        tokens = tokens_of(text, is_code=False)
        why = _fault(text, tokens, ngrams(tokens.hashes, SHINGLE))
    return why


def _fault(text: str, tokens: Tokens, grams: Hashes) -> str | None:
    """Return the first check of quality that a text fails, as a message; None if it passes all."""
    share = tokens.num_letters / max(tokens.num_visible, 1)
    if share < MIN_LETTERS:
        return f"{share:.2f} of it are letters, at least {MIN_LETTERS} are needed"
    lengths = [len(line) for line in text.split("\n") if line.strip()]
    longest = max(lengths, default=0)
    if longest > MAX_LINE_CHARS:
        return f"a line of {longest} characters"
    mean = sum(lengths) / max(len(lengths), 1)
    if mean < MIN_MEAN_LINE_CHARS:
        return f"{mean:.1f} characters a line"
    if len(grams) >= MIN_GRAMS:
        repeated = 1 - len(distinct(grams)) / len(grams)
        if repeated > MAX_REPEATED:
            return f"{repeated:.2f} of its 5-grams are repeats, at most {MAX_REPEATED} may be"
    return None
