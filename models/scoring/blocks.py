"""Blocks: some documents of a partition with their tokens, read while another block is scored."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import pyarrow as pa

from models.scoring.accounting import TokenizedText
from models.scoring.byte_classes import classify_all
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import ScoredDocument, iterate_blocks, iterate_documents
from models.scoring.text_model import TextModel

T = TypeVar("T")
_BLOCK_SIZE = 2**20  # number of characters of text, or of bytes of media


def prefetched(items: Iterable[T]) -> Iterator[T]:
    """Yield the items; a thread prepares the next item while the caller uses the current one."""
    iterator = iter(items)
    end = object()
    with ThreadPoolExecutor(max_workers=1) as pool:
        coming = pool.submit(next, iterator, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, iterator, end)
            yield item  # type: ignore[misc]


class Tokenization(NamedTuple):
    """The fields of a protocol that decide the tokens of a document."""

    special_tokens: bool
    max_chars: int | None
    joined_by: str
    as_text: bool

    @classmethod
    def of(cls, protocol: ScoringProtocol) -> Tokenization:
        """Return a protocol's values of the fields of this class."""
        text = protocol.joined_by or ""
        return cls(protocol.special_tokens, protocol.max_chars, text, not protocol.parses_control)


@dataclass
class Block:
    """Some documents of a partition, in order.

    Attributes:
        tokens: tokens of each document by ``Tokenization``, or None for media without byte tokens.
        seconds: time of tokenizing the block, in s.
    """

    documents: list[ScoredDocument]
    is_first: bool
    tokens: dict[Tokenization, list[TokenizedText | None]] = field(default_factory=dict)
    seconds: float = 0.0


def read_blocks(
    batches: Iterable[pa.RecordBatch],
    text_model: TextModel,
    protocols: Sequence[ScoringProtocol],
    only: frozenset[str] | None = None,
) -> Iterator[Block]:
    """Yield blocks of about a million characters; a thread tokenizes the next block meanwhile."""
    # ``only``: ids of documents; blocks without them are left out. None: all blocks are yielded. A
    # document longer than a block is a block by itself. Tokenizing it takes about 500 bytes of
    # memory per token (1.2 GB for 10 MB of English).
    wanted = {Tokenization.of(protocol) for protocol in protocols}
    documents = iterate_blocks(iterate_documents(batches), _BLOCK_SIZE)

    def blocks() -> Iterator[Block]:
        for number, some in enumerate(documents):
            if only is None or not only.isdisjoint(document.document_id for document in some):
                yield _tokenized(Block(some, number == 0), text_model, wanted)

    return prefetched(blocks())


def _tokenized(block: Block, text_model: TextModel, wanted: set[Tokenization]) -> Block:
    """Tokenize a block's documents in each way that a protocol wants; texts that are equal once."""
    began = time.perf_counter()
    known: dict[tuple[str, bool, bool], TokenizedText] = {}
    for way in sorted(wanted, key=str):
        options = (way.special_tokens, way.as_text)
        contents = [_content(block, row, way) for row in range(len(block.documents))]
        texts = {text for text in contents if isinstance(text, str)}
        new = [text for text in sorted(texts) if (text, *options) not in known]
        tokenized = text_model.tokenizer.tokenize(new, *options)
        known |= {
            (text, *options): tokens._replace(classes=classes)
            for text, tokens, classes in zip(new, tokenized, classify_all(new), strict=True)
        }
        tokens_of_documents: list[TokenizedText | None] = []
        for content in contents:
            if isinstance(content, str):
                tokens_of_documents.append(known[(content, *options)])
            else:
                tokens_of_documents.append(text_model.tokenize_bytes(content))
        block.tokens[way] = tokens_of_documents
    block.seconds = time.perf_counter() - began
    return block


def _content(block: Block, row: int, way: Tokenization) -> str | bytes:
    """Return a document's scored beginning, with ``joined_by`` in front unless it is the first."""
    content = block.documents[row].content[: way.max_chars]
    if isinstance(content, bytes) or (block.is_first and row == 0):
        return content
    return way.joined_by + content
