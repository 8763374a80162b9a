"""Source packages and tarballs (.tar.gz, .gz, single files), unpacked in memory, never to disk.

The first bytes decide the type of a package. HTTP headers are often wrong, and an HTTP client may
have decompressed one layer already. Links in archives are never followed. Every size is checked
before memory is allocated.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from core.errors import ItemUnavailable

MAX_MEMBERS = 2_000  # maximum number of members of a tar archive
MAX_GZIP_MEMBERS = 100  # maximum members of a gzip file; each one costs a copy of the rest
MAX_MEMBER_BYTES = 5 * 2**20
MAX_TOTAL_BYTES = 100 * 2**20
LONE_FILE = "main.tex"  # name of the file if a package is a single file

_BLOCK = 2**20
_GZIP_WINDOW = 31  # value of zlib's ``wbits`` for gzip data with the largest window
_TAR_MAGIC = slice(257, 262)


def read_package(data: bytes, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """Return the text files of a source package, keyed and sorted by path.

    A package is a tar archive or a single file, gzipped or not. A single file is named LONE_FILE.
    Members whose names end in none of the lower-case ``suffixes`` are skipped. Raise
    ItemUnavailable with the reason ``pdf_only``, ``no_tex`` (PostScript, a web page, or no file
    with the suffixes), ``bad_archive``, ``unsafe_path`` or ``too_large``.
    """
    if data.startswith(b"\x1f\x8b"):
        data = gunzip(data)
    if data[_TAR_MAGIC] == b"ustar":
        return _read_tar(data, suffixes)
    _refuse_other_formats(data)
    if len(data) > MAX_MEMBER_BYTES:
        raise ItemUnavailable("too_large", f"the source is one file of {len(data)} bytes")
    return {LONE_FILE: data}


def read_files(
    data: bytes, wants: Callable[[str], bool], max_file_bytes: int
) -> dict[str, bytes | None]:
    """Return the wanted files of a repository's tarball by their path in the repository.

    All members are in one top folder, as in GitHub's tarballs. Links and folders are skipped. A
    file larger than ``max_file_bytes`` has the value None. Raise ItemUnavailable with the reason
    ``bad_archive``, ``unsafe_path`` or ``too_large``.
    """
    if not data.startswith(b"\x1f\x8b"):
        raise ItemUnavailable("bad_archive", "the tarball is not gzip")
    data = gunzip(data)
    if data[_TAR_MAGIC] != b"ustar":
        raise ItemUnavailable("bad_archive", "no tar is in the gzip")
    files: dict[str, bytes | None] = {}
    with _open_tar(data) as archive:
        for member in _regular_members(archive):
            _, _, path = _safe_name(member.name).partition("/")
            if path and wants(path):
                is_small = member.size <= max_file_bytes
                files[path] = _read_member(archive, member) if is_small else None
    return files


def gunzip(data: bytes) -> bytes:
    """Decompress all members of gzip data (RFC 1952); stop once the result is too large.

    Raise ItemUnavailable: ``bad_archive`` (damaged, cut short, too many members) or ``too_large``.
    """
    unpacked = bytearray()
    num_members = 0
    while data.startswith(b"\x1f\x8b"):
        num_members += 1
        if num_members > MAX_GZIP_MEMBERS:
            raise ItemUnavailable("bad_archive", f"more than {MAX_GZIP_MEMBERS} gzip members")
        unpacker = zlib.decompressobj(_GZIP_WINDOW)
        while not unpacker.eof:
            try:
                block = unpacker.decompress(data, _BLOCK)
            except zlib.error as error:
                raise ItemUnavailable("bad_archive", f"damaged gzip: {error}") from error
            data = unpacker.unconsumed_tail
            unpacked += block
            if len(unpacked) > MAX_TOTAL_BYTES:
                raise ItemUnavailable("too_large", f"unpacks to more than {MAX_TOTAL_BYTES} bytes")
            if not block and not data and not unpacker.eof:
                raise ItemUnavailable("bad_archive", "the gzip stream is cut short")
        data = unpacker.unused_data  # the rest: further members, or padding with zeros
    return bytes(unpacked)


def _refuse_other_formats(data: bytes) -> None:
    """Raise ItemUnavailable for a single file that is not a text, such as a PDF or web page."""
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(b"%pdf"):
        raise ItemUnavailable("pdf_only", "the source is a PDF")
    if head.startswith(b"%!"):
        raise ItemUnavailable("no_tex", "the source is PostScript")
    if head.startswith((b"<html", b"<!doctype", b"<?xml")):
        raise ItemUnavailable("no_tex", "the source is a web page")
    if not head:
        raise ItemUnavailable("bad_archive", "the source is empty")
    if b"\0" in head:
        raise ItemUnavailable("bad_archive", "the source is neither gzip, tar nor text")


def _read_tar(data: bytes, suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """Return the files of a tar archive that end in the suffixes; raise ItemUnavailable if none."""
    files: dict[str, bytes] = {}
    has_pdf = False
    with _open_tar(data) as archive:
        for member in _regular_members(archive):
            name = _safe_name(member.name)
            has_pdf = has_pdf or name.lower().endswith(".pdf")
            if name.lower().endswith(suffixes):
                files[name] = _read_member(archive, member)
    if not files:
        reason = "pdf_only" if has_pdf else "no_tex"
        raise ItemUnavailable(reason, f"no member ends in {' '.join(suffixes)}")
    return dict(sorted(files.items()))


@contextlib.contextmanager
def _open_tar(data: bytes) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            yield archive
    # tarfile raises ValueError for some invalid headers, and RecursionError for a long chain of
    # headers with long names.
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError) as error:
        raise ItemUnavailable("bad_archive", f"damaged tar: {error}") from error


def _regular_members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield regular files, without links, folders and sparse files (their size may be enormous)."""
    for number, member in enumerate(archive):
        if number >= MAX_MEMBERS:
            raise ItemUnavailable("too_large", f"more than {MAX_MEMBERS} members")
        if member.isreg() and not member.issparse():
            yield member


def _safe_name(name: str) -> str:
    """Return a member's path; raise ItemUnavailable if it could lead out of the archive."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name:
        raise ItemUnavailable("unsafe_path", f"member {name!r} points outside of its archive")
    return str(path)


def _read_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if member.size > MAX_MEMBER_BYTES:
        raise ItemUnavailable("too_large", f"member {member.name!r} has {member.size} bytes")
    file = archive.extractfile(member)
    return file.read() if file is not None else b""
