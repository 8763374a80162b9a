"""Blocks: documents some at a time, with their tokens as each protocol takes them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from models.accounting import TokenizedText
from models.losses import ScoredDocument, iterate_blocks, iterate_documents
from models.prefetch import prefetched
from models.protocols import ScoringProtocol
from models.text_model import TextModel

_BLOCK_SIZE = 2**20  # characters of text, bytes of media


class Tokenization(NamedTuple):
    """What of a protocol decides the tokens of a document."""

    special_tokens: bool
    max_chars: int | None
    joined_by: str

    @classmethod
    def of(cls, protocol: ScoringProtocol) -> Tokenization:
        """Return that of a protocol."""
        return cls(protocol.special_tokens, protocol.max_chars, protocol.joined_by or "")


@dataclass
class Block:
    """Some documents.

    Attributes:
        documents: in the partition's order.
        is_first: whether the partition begins with them.
        tokens: of each document, by tokenization; None for what has no tokens to speak of (media,
            where the tokenizer has no byte tokens).
        seconds: that tokenizing took, of all tokenizations.
    """

    documents: list[ScoredDocument]
    is_first: bool
    tokens: dict[Tokenization, list[TokenizedText | None]] = field(default_factory=dict)
    seconds: float = 0.0


def read_blocks(
    batches: Iterable[pa.RecordBatch], text_model: TextModel, protocols: Sequence[ScoringProtocol]
) -> Iterator[Block]:
    """Yield blocks of about a million characters, the next one tokenized while one is in use.

    A document longer than a block is a block of its own: it is tokenized whole, which takes about
    500 bytes of memory a token for the while (10 MB of English: 1.2 GB).
    """
    wanted = {Tokenization.of(protocol) for protocol in protocols}
    documents = iterate_blocks(iterate_documents(batches), _BLOCK_SIZE)
    blocks = (Block(some, number == 0) for number, some in enumerate(documents))
    return prefetched(_tokenized(block, text_model, wanted) for block in blocks)


def _tokenized(block: Block, text_model: TextModel, wanted: set[Tokenization]) -> Block:
    began = time.perf_counter()
    known: dict[tuple[str, bool], TokenizedText] = {}
    for way in sorted(wanted, key=str):
        contents = [_content(block, row, way) for row in range(len(block.documents))]
        texts = {text for text in contents if isinstance(text, str)}
        new = [text for text in sorted(texts) if (text, way.special_tokens) not in known]
        tokenized = text_model.tokenizer.tokenize(new, way.special_tokens)
        known |= {
            (text, way.special_tokens): tokens for text, tokens in zip(new, tokenized, strict=True)
        }
        block.tokens[way] = [
            known[content, way.special_tokens]
            if isinstance(content, str)
            else text_model.tokenize_bytes(content)
            for content in contents
        ]
    block.seconds = time.perf_counter() - began
    return block


def _content(block: Block, row: int, way: Tokenization) -> str | bytes:
    """What of a document is tokenized: its beginning, after what joins it to the one before."""
    content = block.documents[row].content[: way.max_chars]
    if isinstance(content, bytes) or (block.is_first and row == 0):
        return content
    return way.joined_by + content
