"""Control tokens, and texts that spell them.

A tokenizer looks for its special tokens (``</s>``, ``<|endoftext|>``) in every text. So a page that
contains the five characters of ``</s>`` would put the end of a document into itself. Some kinds of
models (Unigram, WordLevel) find such tokens in their own vocabulary, too, where the option
``encode_special_tokens`` of the tokenizers library has no effect.

``ControlTokens.plain`` is a copy of the tokenizer in which each control token has another spelling,
its mark. The mark has random digits, so no text can spell it. In parts of a prompt that are ours,
``marked`` replaces the spellings by the marks.

A configuration may name an ordinary word of the vocabulary, as in ``"pad_token": "tide"``. In texts
it stays this word, with its own id.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from core.errors import NotMeasurable
from core.json import JsonObject

# Code points that no character has. Texts seldom contain them, and no normaliser changes them.
_OPEN = "\ufdd0"
_CLOSE = "\ufdd1"
# Letters and digits, behind a mark of a space or of a word's continuation.
_WORD = re.compile(r"[\s\u2581\u0120]*(?:##)?[^\W_][^\W_'-]*")


def control_ids(tokenizer: Tokenizer, named: Iterable[str] = ()) -> dict[str, int]:
    """Return the id of each control token by its spelling."""
    # These are the special tokens of the tokenizer, and the tokens that its configuration names. A
    # single character is text, even where a configuration names it, as in ``"pad_token": "!"``.
    added = tokenizer.get_added_tokens_decoder().items()
    found = {token.content: number for number, token in added if token.special}
    for name in named:
        number = tokenizer.token_to_id(name)
        if number is not None:
            found[name] = number
    return {name: number for name, number in found.items() if len(name) > 1}


def is_word(name: str) -> bool:
    """Return True if the spelling of a control token is that of an ordinary word."""
    return _WORD.fullmatch(name) is not None


def spelling_pattern(names: Iterable[str]) -> str:
    """Return a regular expression for any of the spellings, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


class ControlTokens:
    """The control tokens of a tokenizer, by spelling; see the module."""

    def __init__(self, tokenizer: Tokenizer, named: Iterable[str] = ()) -> None:
        self._tokenizer = tokenizer
        self.ids = control_ids(tokenizer, named)
        largest = max(self.ids.values(), default=-1)
        self._is_control = np.zeros(largest + 1, dtype=bool)
        self._is_control[list(self.ids.values())] = True
        self._pattern = re.compile(spelling_pattern(self.ids)) if self.ids else None
        words = tokenizer.get_vocab(with_added_tokens=False)
        self._words = frozenset(name for name in self.ids if name in words and is_word(name))
        digits = secrets.token_hex(8)
        self._marks = {
            name: f"{_OPEN}{digits}{number}{_CLOSE}"
            for number, name in enumerate(self.ids)
            if name not in self._words
        }

    def count(self, ids: npt.NDArray[np.int64]) -> int:
        """Return how many of the ids are control tokens."""
        inside = ids[ids < len(self._is_control)]
        return int(self._is_control[inside].sum())

    def are_in(self, text: str) -> bool:
        """Return True if a text spells a control token."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def marked(self, text: str) -> str:
        """Replace the spellings of control tokens by the marks that ``plain`` reads."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._marks.get(match[0], match[0]), text)

    @cached_property
    def plain(self) -> Tokenizer:
        """A copy of the tokenizer that reads a spelled control token as text."""
        state = json.loads(self._tokenizer.to_str())
        kept = [each for each in state["added_tokens"] if each["content"] not in self._words]
        for added in kept:
            added["content"] = self._marks.get(added["content"], added["content"])
        state["added_tokens"] = kept
        _rename(state["model"], self._marks)
        plain = Tokenizer.from_str(json.dumps(state))
        for name, mark in self._marks.items():
            if plain.token_to_id(mark) != self.ids[name]:
                raise NotMeasurable(
                    f"the tokenizer gives its control token {name!r} another id if it is spelled "
                    "otherwise, so a text with it cannot be read as text; get another tokenizer"
                )
        return plain


def _rename(model: JsonObject, marks: Mapping[str, str]) -> None:
    """Give tokens of a tokenizer's model other spellings; the id of each token stays."""
    # Merges that make such a token of other tokens are left out.
    vocabulary = model["vocab"]
    if isinstance(vocabulary, dict):
        model["vocab"] = {marks.get(name, name): number for name, number in vocabulary.items()}
    else:  # Unigram
        model["vocab"] = [[marks.get(name, name), score] for name, score in vocabulary]
    if isinstance(model.get("unk_token"), str):
        model["unk_token"] = marks.get(model["unk_token"], model["unk_token"])
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if not _touches(pair, marks)]


def _touches(pair: list[str], names: Mapping[str, str]) -> bool:
    left, right = pair
    return left in names or right in names or left + right in names
