"""Where a text ends because of what it says: a regular expression, looked for as the text grows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_LONGEST_MATCH = 4096  # characters; what is further back is not searched again at each token
_HELD_BACK = 8  # tokens that may be bytes of one character
_BROKEN = "\ufffd"
# Reasoning models think aloud, and say what the answer might be, before they answer.
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|reasoning)>", re.IGNORECASE)

Decode = Callable[[Sequence[int]], str]


class StopText:
    """Looks for the first match in one text, decoding only what is new at each token.

    Args:
        pattern: what ends the text; a match is at most 4096 characters long.
        decode: makes a text of token ids.
        prompt: end of what stands before the text; it may open a thought. In a thought no match
            counts.
    """

    def __init__(self, pattern: re.Pattern[str], decode: Decode, prompt: str = "") -> None:
        self._pattern, self._decode = pattern, decode
        self._begins_in_thought = _is_open(prompt, is_open=False)
        self._text = ""  # of the tokens before ``_end``
        # A token's text may depend on the one before it (a space in front, bytes of a character).
        self._begin, self._end = 0, 0

    def ended(self, tokens: Sequence[int]) -> str | None:
        """Return the whole text if it ends here, its match included; else None.

        Args:
            tokens: all of the text so far, one or more of them new.
        """
        before = self._decode(tokens[self._begin : self._end])
        new = self._decode(tokens[self._begin :])[len(before) :]
        text = self._text + new
        found = self._pattern.search(text, max(0, len(text) - len(new) - _LONGEST_MATCH))
        if not new.endswith(_BROKEN) or len(tokens) - self._end >= _HELD_BACK:
            self._text = text
            self._begin, self._end = self._end, len(tokens)
        if found is None:
            return None
        whole = self._decode(tokens)
        for match in self._pattern.finditer(whole):
            if not _is_open(whole[: match.start()], self._begins_in_thought):
                return whole[: match.end()]
        return None


def _is_open(text: str, is_open: bool) -> bool:
    """Whether a text ends within a thought; ``is_open``: whether it begins in one."""
    tags = _THOUGHT.findall(text)
    return tags[-1] == "" if tags else is_open
