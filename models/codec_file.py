"""The codec's file: a header that says what it takes to read it, the chunks' codes, a checksum.

    0x89 "TMK", version         5 bytes
    length of the header        varint (7 bits a byte, the lowest first)
    header                      JSON, deflated (RFC 1951) with the dictionary below
    each chunk                  varint number of tokens, varint length, code
    SHA-256 of all before it    32 bytes

Nothing is believed before the checksum was found right, and nothing that a header says is larger
than what is there: a file may come from anybody.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from core.errors import MalformedInput

_MAGIC = b"\x89TMK"
_VERSION = 1
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_MAX_HEADER_BYTES = 2**16

# What most headers have in common, so that it costs next to nothing. Part of version 1 for ever.
_DICTIONARY = (
    b"Intel(R) Xeon(R) CPU @ -Core Processor AVX2cuda: NVIDIA H100 80GB HBM3cuda: NVIDIA H200"
    b'"cuda","dtype":"bfloat16","threads":+cu130"}}'
    b'{"model":"reference-20","location":"/home/models/reference-20","revision":"","digest":"",'
    b'"protocol":"default","protocol_digest":"051fed7d","context":2048,"num_bytes":1,"sha256":"",'
    b'"num_chunks":1,"has_space_in_front":false,"by_decoder":false,"batch":64,"keeps_state":true,"probe":"",'
    b'"device":"cpu","dtype":"float32","threads":8,"environment":{"attention":"sdpa",'
    b'"hardware":"cpu: AMD EPYC AVX512","tidemark":"0.1.0","numpy":"2.4.6","tokenizers":"0.23.3",'
    b'"transformers":"5.23.0","torch":"2.13.0+cpu"}}'
)

Dtype = Literal["float64", "float32", "bfloat16", "float16"]
_Name = Annotated[str, Field(max_length=4096)]
_Count = Annotated[int, Field(ge=0, lt=2**62)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")]


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Header:
    """What is needed to read the chunks, and to refuse where they could not be read.

    Attributes:
        model: name in the catalogue, hub id, or last part of a folder's path.
        location: hub id, or the folder's path where the file was written.
        revision: commit of the hub, or digest of the folder's files.
        digest: of the files of configuration, tokenizer and weights; for an adapter, with its
            base's; see ``codec_refusal.model_digest``.
        protocol: by which the text was cut into chunks.
        protocol_digest: of its definition.
        context: tokens of a window, start token included.
        num_bytes: of the text.
        sha256: of the text.
        num_chunks: how many follow.
        has_space_in_front: whether the tokens spell a space before the text.
        by_decoder: whether the tokenizer's decoder spells the text, and not its tokens' bytes.
        batch: chunks in a group.
        keeps_state: whether the model carried its state from step to step.
        probe: digest of what a short pass of such a group gives.
        device: type of the torch device.
        dtype: of the weights.
        threads: that torch was set to.
        environment: what else decides a float's last bits: hardware, attention, versions.
    """

    model: _Name
    location: _Name
    revision: _Name
    digest: Annotated[str, Field(pattern=r"^[0-9a-f+]{1,64}$")]
    protocol: _Name
    protocol_digest: _Digest
    context: Annotated[int, Field(ge=2, lt=2**32)]
    num_bytes: _Count
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    num_chunks: _Count
    has_space_in_front: bool
    by_decoder: bool
    batch: Annotated[int, Field(ge=1, lt=2**31)]
    keeps_state: bool
    probe: _Digest
    device: Annotated[str, Field(pattern=r"^[a-z]{1,16}$")]
    dtype: Dtype
    threads: Annotated[int, Field(ge=1, le=4096)]
    environment: dict[str, str]


_HEADER = TypeAdapter(Header)


class CodedFile(NamedTuple):
    """A header, and each chunk's code with its number of tokens."""

    header: Header
    chunks: Sequence[tuple[bytes, int]]


def pack(file: CodedFile) -> bytes:
    """Return the file's bytes."""
    record = json.dumps(
        dataclasses.asdict(file.header), separators=(",", ":"), ensure_ascii=False
    ).encode()
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zdict=_DICTIONARY)
    header = compressor.compress(record) + compressor.flush()
    parts = [_MAGIC, bytes([_VERSION]), _varint(len(header)), header]
    for code, num_tokens in file.chunks:
        parts += [chunk_prefix(code, num_tokens), code]
    content = b"".join(parts)
    return content + hashlib.sha256(content).digest()


def chunk_prefix(code: bytes, num_tokens: int) -> bytes:
    """Return what stands before a chunk's code."""
    return _varint(num_tokens) + _varint(len(code))


def unpack(data: bytes, where: str) -> CodedFile:
    """Read a file's bytes, having checked that they are all there and as they were written.

    Args:
        data: the file.
        where: its name, for messages.

    Raises:
        MalformedInput: no such file, one of another version, damaged or cut off, or a header that
            contradicts itself or what follows.
    """
    if not data.startswith(_MAGIC):
        raise MalformedInput(f"{where} is no file that `tidemark compress` wrote")
    content, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if hashlib.sha256(content).digest() != checksum:
        raise MalformedInput(
            f"{where} is damaged or cut off: its checksum does not fit; get another copy"
        )
    if content[len(_MAGIC) : len(_MAGIC) + 1] != bytes([_VERSION]):
        raise MalformedInput(
            f"{where} is of another version of the format than {_VERSION}, the one that this "
            "tidemark reads; use the tidemark that wrote it"
        )
    reader = _Reader(content, len(_MAGIC) + 1, where)
    header = _parse_header(reader.take(reader.varint()), where)
    chunks = []
    for _ in range(header.num_chunks):  # each takes two bytes at least: no more than there are
        num_tokens = reader.varint()
        chunks.append((reader.take(reader.varint()), num_tokens))
        if not 1 <= num_tokens <= header.context:
            raise MalformedInput(f"{where}: a chunk of {num_tokens} tokens")
    if not reader.is_at_end:
        raise MalformedInput(f"{where}: more than the {header.num_chunks} chunks of its header")
    return CodedFile(header, chunks)


def _parse_header(deflated: bytes, where: str) -> Header:
    inflater = zlib.decompressobj(-15, zdict=_DICTIONARY)
    try:
        record = inflater.decompress(deflated, _MAX_HEADER_BYTES)
        if not inflater.eof:
            raise MalformedInput(f"{where}: the header is longer than {_MAX_HEADER_BYTES} bytes")
        return _HEADER.validate_json(record)
    except (zlib.error, ValidationError) as error:
        detail = str(error).splitlines()[:3]
        raise MalformedInput(f"{where}: the header cannot be read ({' '.join(detail)})") from error


class _Reader:
    def __init__(self, data: bytes, position: int, where: str) -> None:
        self._data, self._position, self._where = data, position, where

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._data)

    def take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise MalformedInput(f"{self._where}: ends before what its header announces")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def varint(self) -> int:
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedInput(f"{self._where}: a number of more than nine bytes")


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
