"""The tokenizers of RWKV checkpoints: World (a list of byte strings) and Pile (a JSON file).

World (https://github.com/BlinkDL/RWKV-LM, files ``rwkv_vocab_v*.txt``) has one token per line: its
id, its bytes as a Python literal, and the number of bytes. A text's bytes are split into the
longest matching tokens, from left to right. Id 0, which is not in the file, is the end of a text.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from core.errors import ModelLoadError
from core.version import how_to_install
from models.scoring.accounting import Accountant, TokenizedText, whole_characters
from models.scoring.text_model import TextModel

WORLD_PATTERN = "rwkv_vocab_v*.txt"
PILE_NAME = "20B_tokenizer.json"
_SHIPPED_WORLD = "rwkv_vocab_v20230424.txt"  # a file of the rwkv package with 65,529 tokens
_END_OF_TEXT = 0
_PILE_END_OF_TEXT = "<|endoftext|>"
_MAX_FILE_BYTES = 2**24  # World's file has 1.2 MB, Pile's 2.5 MB
_MAX_LINE_CHARS = 4096
_LINE = re.compile(r"([0-9]{1,8}) (b?['\"].*['\"]) ([0-9]{1,4})")
# Embeddings have spare rows: 65,536 for World's 65,530 ids, up to 50,432 for Pile's 50,277 ids.
_MAX_SPARE_ROWS = 1024
_Read = tuple[TextModel, Callable[[Sequence[int]], str]]


class WorldTokenizer:
    """Splits a text's bytes into the longest matching tokens of a vocabulary."""

    def __init__(self, vocabulary: Mapping[bytes, int]) -> None:
        self._vocabulary = dict(vocabulary)
        lengths: dict[bytes, set[int]] = {}
        for token in vocabulary:
            lengths.setdefault(token[:2], set()).add(len(token))
        # For each pair of first bytes, the lengths of tokens that begin so, longest first.
        self._lengths = {start: sorted(own, reverse=True) for start, own in lengths.items()}

    def encode(self, raw: bytes) -> tuple[list[int], list[int]]:
        """Return the ids of the tokens, and each token's number of bytes."""
        ids = []
        sizes = []
        place = 0
        while place < len(raw):
            token = self._longest(raw, place)
            ids.append(self._vocabulary[token])
            sizes.append(len(token))
            place += len(token)
        return ids, sizes

    def _longest(self, raw: bytes, place: int) -> bytes:
        """Return the longest token at a place."""
        for size in self._lengths.get(raw[place : place + 2], ()):
            piece = raw[place : place + size]
            if piece in self._vocabulary:
                return piece
        return raw[place : place + 1]

    def tokenize(
        self, texts: Sequence[str], special_tokens: bool = False, as_text: bool = False
    ) -> list[TokenizedText]:
        """Tokenize texts; the options have no effect, because World has no special tokens."""
        return [self._tokenize(text) for text in texts]

    def _tokenize(self, text: str) -> TokenizedText:
        """Return the tokens of a text, with the bytes and characters that each covers."""
        raw = text.encode()
        ids, sizes = self.encode(raw)
        covered = np.cumsum([0, *sizes], dtype=np.int64)
        chars = whole_characters(text, raw, covered)
        return TokenizedText(np.array(ids, dtype=np.int64), chars, covered)


class RwkvTokenizer(NamedTuple):
    """A checkpoint's tokenizer: the path of its file, its TextModel, and the way back to text."""

    path: Path
    text_model: TextModel
    decode: Callable[[Sequence[int]], str]


def open_tokenizer(weights: Path, num_rows: int) -> RwkvTokenizer:
    """Find the tokenizer of a checkpoint.

    Use the file in the weights' folder whose ids fit the ``num_rows`` rows of the embedding (World:
    ``rwkv_vocab_v*.txt``; Pile: ``20B_tokenizer.json``). Without such files, try the vocabulary in
    the rwkv package. Raise ModelLoadError if none or several files fit, or a file is broken.
    """
    folder = weights.parent
    paths = sorted([*folder.glob(WORLD_PATTERN), *folder.glob(PILE_NAME)])
    paths = paths or [package_folder() / _SHIPPED_WORLD]
    opened = [RwkvTokenizer(path, *_read(path)) for path in paths]
    fitting = [
        each for each in opened if 0 <= num_rows - each.text_model.vocabulary_size < _MAX_SPARE_ROWS
    ]
    if len(fitting) == 1:
        return fitting[0]
    tried = ", ".join(f"{each.path} ({each.text_model.vocabulary_size} ids)" for each in opened)
    raise ModelLoadError(
        f"{weights}: the embedding has {num_rows} rows, and "
        f"{'several tokenizers fit' if fitting else 'no tokenizer fits'}: {tried}; put the one "
        f"file that the model was trained with beside the weights: {_SHIPPED_WORLD} for World "
        f"models (65,536 rows), {PILE_NAME} for Pile models (50,277 rows)"
    )


def parse_world(data: bytes, where: str) -> dict[bytes, int]:
    """Parse a World vocabulary; return the id of each token.

    Only string and bytes literals are evaluated. Raise ModelLoadError for another format, a
    repeated token or id, or a single byte without a token.
    """
    try:
        lines = data.decode().replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelLoadError(f"{where}: not UTF-8 ({error})") from error
    vocabulary: dict[bytes, int] = {}
    for number, line in enumerate(lines, start=1):
        if line:
            token, index = _parse_line(line, f"{where}, line {number}")
            if token in vocabulary:
                raise ModelLoadError(f"{where}, line {number}: the token {token!r} is there twice")
            vocabulary[token] = index
    if len(set(vocabulary.values())) < len(vocabulary):
        raise ModelLoadError(f"{where}: two tokens have the same id")
    missing = [byte for byte in range(256) if bytes([byte]) not in vocabulary]
    if missing:
        raise ModelLoadError(
            f"{where}: {len(missing)} single bytes have no token, the first is {missing[0]:#04x}; "
            "texts with it cannot be tokenized"
        )
    return vocabulary


def _parse_line(line: str, where: str) -> tuple[bytes, int]:
    """Return the bytes and the id of a token; raise an error if the line is no token."""
    match = _LINE.fullmatch(line) if len(line) <= _MAX_LINE_CHARS else None
    if match is None:
        raise ModelLoadError(
            f"{where}: expected an id, a quoted token and its length, got {line[:80]!r}"
        )
    try:
        literal = ast.literal_eval(match[2])
        token = literal.encode() if isinstance(literal, str) else literal
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise ModelLoadError(f"{where}: {match[2][:80]} is no literal of a token") from error
    if not isinstance(token, bytes) or len(token) != int(match[3]) or not token:
        raise ModelLoadError(f"{where}: {match[2][:80]} is no token of {match[3]} bytes")
    if int(match[1]) == _END_OF_TEXT:
        raise ModelLoadError(f"{where}: id {_END_OF_TEXT} is the end of a text, not a token")
    return token, int(match[1])


def _read(path: Path) -> _Read:
    """Return the text model of a tokenizer's file, and the function that decodes ids."""
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise ModelLoadError(f"{path}: more than {_MAX_FILE_BYTES} bytes; no tokenizer is")
        data = path.read_bytes()
    except OSError as error:
        raise ModelLoadError(f"{path}: cannot be read ({error})") from error
    if path.suffix == ".txt":
        return _world_model(parse_world(data, str(path)))
    return _pile_model(data, path)


def _world_model(vocabulary: Mapping[bytes, int]) -> _Read:
    """Return the text model of the vocabulary "World", and the function that decodes ids."""
    # Every vocabulary has a token for each single byte (checked by ``parse_world``).
    byte_tokens = np.array([vocabulary[bytes([byte])] for byte in range(256)], dtype=np.int64)
    texts = {index: token for token, index in vocabulary.items()}
    model = TextModel(
        tokenizer=WorldTokenizer(vocabulary),
        vocabulary_size=max(vocabulary.values()) + 1,
        start_token=_END_OF_TEXT,
        eos_token=_END_OF_TEXT,  # Uncheatable Eval begins each chunk of an RWKV with it
        start_text=f"<{_END_OF_TEXT}>",
        byte_tokens=byte_tokens,
    )

    def decode(ids: Sequence[int]) -> str:  # spare rows of the embedding have no text
        return b"".join(texts.get(each, b"") for each in ids).decode(errors="replace")

    return model, decode


def _pile_model(data: bytes, path: Path) -> _Read:
    """Return the text model of a file of tokenizers, and the function that decodes ids."""
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the tokenizers library raises bare Exception
        raise ModelLoadError(f"{path}: not a file of the tokenizers library ({error})") from error
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise ModelLoadError(f"{path}: the tokenizer has no vocabulary")
    start = tokenizer.token_to_id(_PILE_END_OF_TEXT)
    accountant = Accountant(tokenizer)
    model = TextModel(
        tokenizer=accountant,
        accountant=accountant,
        vocabulary_size=max(vocabulary.values()) + 1,
        start_token=start,
        eos_token=start,
        start_text=None if start is None else _PILE_END_OF_TEXT,
    )
    return model, tokenizer.decode


def package_folder() -> Path:
    """Return the rwkv package's folder without importing it; raise ModelLoadError if absent."""
    spec = importlib.util.find_spec("rwkv")
    if spec is None or not spec.submodule_search_locations:
        raise ModelLoadError(
            f"RWKV checkpoints (.pth) need the rwkv package: {how_to_install('rwkv')}"
        )
    return Path(spec.submodule_search_locations[0])
