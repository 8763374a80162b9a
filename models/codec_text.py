"""Texts as chunks of tokens, in such a way that the tokens give the text back byte by byte."""

from __future__ import annotations

from typing import NamedTuple

from core.errors import NotMeasurable
from models.accounting import Accountant, token_bytes
from models.backend import Tokens
from models.checkpoint import CheckpointFiles
from models.protocols import get_protocol
from models.stepwise import First
from models.windows import plan_windows

PROTOCOL = "default"


class CutText(NamedTuple):
    """A text's tokens by chunks, and how they spell it.

    ``by_decoder``: the tokenizer's decoder gives the text back, and not its tokens' own bytes.
    """

    chunks: list[Tokens]
    has_space_in_front: bool
    by_decoder: bool


class Cutter:
    """Cuts texts into chunks of tokens as the default protocol does, and spells tokens again.

    Args:
        files: the model's; its weights are not needed.

    Attributes:
        context: tokens of a window, start token included.
        first: the start token, or the ids of which any may be a chunk's first.
        largest_id: of a token.
    """

    def __init__(self, files: CheckpointFiles) -> None:
        tokenizer = files.tokenizer
        bos, eos = tokenizer.bos_token_id, tokenizer.eos_token_id
        start: int | None = eos if bos is None else bos
        ids = sorted(set(tokenizer.get_vocab().values()))
        self._location = files.location
        self._protocol = get_protocol(PROTOCOL)
        self._tokenizer = tokenizer.backend_tokenizer
        self._accountant = Accountant(self._tokenizer)
        self._table = token_bytes(self._tokenizer) or []
        self._num_prefix = 0 if start is None else 1
        self.context = self._protocol.effective_context(files.context)
        self.first: First = ids if start is None else start
        self.largest_id = ids[-1]

    def cut(self, text: str) -> CutText:
        """Return a text's tokens by chunks.

        Raises:
            NotMeasurable: the tokenizer does not give this text back.
        """
        raw = text.encode()
        [tokens] = self._accountant.tokenize([text])
        windows = plan_windows(len(tokens.ids), self._protocol, self.context, self._num_prefix)
        chunks = [tokens.ids[window.first : window.end] for window in windows]
        for by_decoder in (False, True):
            spelled = self.spell(tokens.ids, by_decoder)
            if spelled in (raw, b" " + raw):
                return CutText(chunks, len(spelled) > len(raw), by_decoder)
        raise NotMeasurable(
            f"{self._location}: its tokenizer does not give this text back (it normalises, drops "
            "or does not know some characters), so another text would be restored; use a model "
            "with byte-level BPE"
        )

    def spell(self, ids: Tokens, by_decoder: bool) -> bytes:
        """Return the bytes that tokens stand for, int64 (n,); unknown ids stand for none."""
        if by_decoder:
            return self._tokenizer.decode(ids.tolist(), skip_special_tokens=False).encode()
        return b"".join(self._table[index] for index in ids.tolist() if index < len(self._table))
