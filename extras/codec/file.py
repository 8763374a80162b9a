"""The file format of the codec: a header, the codes of the chunks, and a checksum.

    0x89 "TMK", version         5 bytes
    length of the header        varint (7 bits a byte, the lowest first)
    header                      JSON, deflated (RFC 1951) with the dictionary below
    each chunk                  varint number of tokens, varint length, code
    SHA-256 of all bytes above  32 bytes

A file may come from an untrusted source. So the reader verifies the checksum first, and never reads
beyond the end of the file, even if the header states wrong lengths.

The header records everything that influences the last bits of a probability. Decoding fails with an
error if this machine differs from the one in the header. Floating-point sums depend on the order of
addition, which depends on library versions, processor instructions, number of threads and shapes.
The test with a short pass does not detect all differences. So any known difference is an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from core.errors import MalformedInput, ModelLoadError, NotReproducible
from extras.codec.stepwise import StepwiseModel, probe_digest
from models.scoring.machine import describe_device, library_versions, name_of_dtype
from models.scoring.protocols import get_protocol
from models.weights.checkpoint import CheckpointFiles
from models.weights.files import choose_files, folder_digest

_MAGIC = b"\x89TMK"
_VERSION = 1
_CHECKSUM_BYTES = hashlib.sha256().digest_size
_MAX_HEADER_BYTES = 2**16

# Text common to most headers, used as zlib dictionary. Never change it: version 1 depends on it.
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

_Name = Annotated[str, Field(max_length=4096)]
_Count = Annotated[int, Field(ge=0, lt=2**62)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{1,64}$")]


PROTOCOL = "default"  # the windows of this protocol are the chunks
# Libraries whose versions are recorded but not compared.
_INFORMATIVE = {"tidemark"}


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class Header:
    """The facts that are needed to decode the chunks, or to detect that they cannot be decoded.

    Attributes:
        revision: commit of the hub, or digest of the folder's files.
        digest: digest of the files of configuration, tokenizer and weights (``model_digest``).
        context: maximum number of tokens of a window, start token included.
        has_space_in_front: True if the decoded tokens start with an extra space.
        by_decoder: True if only the tokenizer's decoder restores the text; see ``CutText``.
        batch: number of chunks that are coded together as a group.
        keeps_state: True if the model kept its state (such as the KV cache) between steps.
        probe: digest of the results of a short pass with a group of ``batch`` rows.
        environment: other influences on a float's last bits: hardware, attention, versions.
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
    dtype: Annotated[str, Field(pattern=r"^(float64|float32|bfloat16|float16)$")]
    threads: Annotated[int, Field(ge=1, le=4096)]
    environment: dict[str, str]


_HEADER = TypeAdapter(Header)


class CodedFile(NamedTuple):
    """A header, and for each chunk its code and its number of tokens."""

    header: Header
    chunks: Sequence[tuple[bytes, int]]


def pack(file: CodedFile) -> bytes:
    """Convert a coded file to bytes."""
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
    """Return the bytes before a chunk's code: its number of tokens and its length in bytes."""
    return _varint(num_tokens) + _varint(len(code))


def unpack(data: bytes, where: str) -> CodedFile:
    """Parse a file's bytes after verifying format and checksum.

    Raise MalformedInput if the file is damaged or cut off, has another format or version, or has a
    header that contradicts itself or the chunks.
    """
    if not data.startswith(_MAGIC):
        raise MalformedInput(f"{where} is no file that `tidemark compress` wrote")
    content = data[:-_CHECKSUM_BYTES]
    checksum = data[-_CHECKSUM_BYTES:]
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
    for _ in range(header.num_chunks):  # a wrong number of chunks raises an error
        num_tokens = reader.varint()
        chunks.append((reader.take(reader.varint()), num_tokens))
        if not 1 <= num_tokens <= header.context:
            raise MalformedInput(f"{where}: a chunk of {num_tokens} tokens")
    if not reader.is_at_end:
        raise MalformedInput(f"{where}: more than the {header.num_chunks} chunks of its header")
    return CodedFile(header, chunks)


def _parse_header(deflated: bytes, where: str) -> Header:
    """Return the header of a compressed file; raise an error if it is damaged or too long."""
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
        self._data = data
        self._position = position
        self._where = where

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._data)

    def take(self, size: int) -> bytes:
        """Return the next bytes; raise an error if the file ends before."""
        end = self._position + size
        if end > len(self._data):
            raise MalformedInput(f"{self._where}: is shorter than its header states")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def varint(self) -> int:
        """Return the next number (LEB128)."""
        value = 0
        for shift in range(0, 63, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedInput(f"{self._where}: a number of more than nine bytes")


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first (LEB128)."""
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def folder_files_digest(folder: Path) -> str:
    """Return a digest (16 hex digits) of a folder's files of configuration, tokenizer and weights.

    Raise ModelLoadError if the folder has no weights or a file cannot be read.
    """
    try:
        names = [path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".py"]
    except OSError as error:
        raise ModelLoadError(f"{folder}: cannot be read ({error})") from error
    chosen = choose_files(names, str(folder), is_trusted=True)
    return folder_digest(folder, tuple(chosen))


def model_digest(files: CheckpointFiles) -> str:
    """Return the digest of a model's files; for an adapter: its digest, "+", its base's digest.

    Raise the errors of ``folder_files_digest``.
    """
    parts = [files.folder] if files.adapter is None else [files.adapter, files.folder]
    return "+".join(map(folder_files_digest, parts))


def environment(files: CheckpointFiles) -> dict[str, str]:
    """Return hardware, attention implementation and library versions, as a header records them."""
    hardware = describe_device(files.device)
    if files.device.type == "cpu":  # ATEN_CPU_CAPABILITY may disable processor instructions
        hardware += f" {torch.backends.cpu.get_cpu_capability()}"
    return {
        "attention": files.attention,
        "hardware": hardware,
        **library_versions("numpy", "tokenizers", "transformers"),
        "torch": torch.__version__,  # ends with the build: CPU, or the CUDA version
    }


@contextlib.contextmanager
def torch_threads(number: int) -> Iterator[None]:
    """Set the number of torch threads within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def check_protocol(header: Header, where: str) -> None:
    """Raise NotReproducible if the recorded protocol differs from this version's PROTOCOL."""
    known = get_protocol(PROTOCOL)
    if (header.protocol, header.protocol_digest) != (known.name, known.digest):
        raise NotReproducible(
            f"{where} is cut into chunks by protocol {header.protocol} "
            f"({header.protocol_digest}); this tidemark decodes {known.name} ({known.digest}) alone"
        )


def check_device(header: Header, where: str) -> None:
    """Raise NotReproducible if this machine does not have the recorded device."""
    if header.device == "cpu" or (header.device == "cuda" and torch.cuda.is_available()):
        return
    raise NotReproducible(
        f"{where} was written on {header.device} ({header.environment.get('hardware')}), which "
        "torch does not find here; decode it on such a machine"
    )


def check_files(header: Header, files: CheckpointFiles, where: str) -> None:
    """Raise NotReproducible, naming the difference, if files, libraries or hardware differ."""
    found = model_digest(files)
    if found != header.digest:
        raise NotReproducible(
            f"{where} was written with {header.model} of digest {header.digest} (revision "
            f"{header.revision}); {files.location} has digest {found}: other weights or another "
            "tokenizer"
        )
    context = get_protocol(PROTOCOL).effective_context(files.context)
    here = environment(files)
    known = here | {"context": str(context), "dtype": name_of_dtype(files.dtype)}
    recorded = header.environment | {"context": str(header.context), "dtype": header.dtype}
    differences = [
        f"{name} {recorded.get(name, 'unknown')} (here {known.get(name, 'unknown')})"
        for name in sorted({*known, *recorded} - _INFORMATIVE)
        if recorded.get(name) != known.get(name)
    ]
    if differences:
        raise NotReproducible(
            f"{where} was written with {', '.join(differences)}; the probabilities would differ "
            "in their last bits, and decoding fails at the first difference"
        )


def check_pass(header: Header, model: StepwiseModel, most_rows: int, where: str) -> None:
    """Run a short pass with the recorded group size, and compare its digest with the recorded one.

    Raise MalformedInput if the group size is larger than tidemark would choose, and NotReproducible
    if the digests differ.
    """
    if header.batch > min(most_rows, max(1, header.num_chunks)):
        raise MalformedInput(
            f"{where}: groups of {header.batch} chunks, where there are {header.num_chunks} and "
            f"at most {most_rows} fit"
        )
    if header.keeps_state != model.keeps_state or probe_digest(model, header.batch) != header.probe:
        raise NotReproducible(
            f"{where} was written where the model gave other floats than it gives here (by a short "
            "pass on fixed tokens): another build of a library, another processor or another "
            "setting of torch; decode it where it was written"
        )
