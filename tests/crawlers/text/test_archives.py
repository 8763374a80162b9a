"""Hostile packages: no access outside of them, and no stated size is trusted."""

import gzip
import io
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import ItemUnavailable
from crawlers.text import archives
from crawlers.text.archives import LONE_FILE, gunzip, read_package

TEX = b"\\documentclass{article}\\begin{document}Text\\end{document}"


def tar(*members: tuple[str | tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def special(kind: bytes, name: str = "link.tex", target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def reason_of(data: bytes) -> str:
    with pytest.raises(ItemUnavailable) as caught:
        read_package(data, (".tex",))
    return caught.value.reason


LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)
MANY = tar(("./b/two.TEX", b"2"), ("a.tex", TEX), ("plot.pdf", b"%PDF"), ("x.sty", b"s"))
LARGE_FIGURE = tar(("a.tex", TEX), ("photo.eps", bytes(archives.MAX_MEMBER_BYTES + 1)))


@pytest.mark.parametrize(
    ("data", "files"),
    [
        (MANY, {"a.tex": TEX, "b/two.TEX": b"2"}),
        (gzip.compress(MANY), {"a.tex": TEX, "b/two.TEX": b"2"}),
        (gzip.compress(TEX), {LONE_FILE: TEX}),
        (TEX, {LONE_FILE: TEX}),  # unpacked by the client
        (LARGE_FIGURE, {"a.tex": TEX}),
        *((tar((special(kind), b""), ("a.tex", TEX)), {"a.tex": TEX}) for kind in LINKS),
    ],
    ids=["tar", "tar.gz", "gzip", "lone", "figure", "symlink", "link", "pipe", "device"],
)
def test_text_members_come_by_name_and_all_else_is_passed_over(
    data: bytes, files: dict[str, bytes]
) -> None:
    assert list(read_package(data, (".tex",)).items()) == list(files.items())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.5 ...", "pdf_only"),
        (gzip.compress(b"%PDF-1.5 ..."), "pdf_only"),
        (tar(("paper.PDF", b"%PDF")), "pdf_only"),
        (b"%!PS-Adobe-3.0", "no_tex"),
        (b"\n<HTML><body>withdrawn", "no_tex"),
        (b"<!DOCTYPE html>", "no_tex"),
        (tar(("readme.md", b"")), "no_tex"),
        (b"", "bad_archive"),
        (b"\x00\x01\x02", "bad_archive"),
        (b"\x1f\x8b not gzip at all", "bad_archive"),
        (gzip.compress(TEX)[:-12], "bad_archive"),
        (gzip.compress(TEX)[:2], "bad_archive"),
        (tar(("a.tex", bytes(4096)))[:1500], "bad_archive"),
        (tar(("/etc/cron.d/a.tex", TEX)), "unsafe_path"),
        (tar(("a/../../b.tex", TEX)), "unsafe_path"),
        (tar(("..\\b.tex", TEX)), "unsafe_path"),
        (tar(("a.tex", bytes(archives.MAX_MEMBER_BYTES + 1))), "too_large"),
        (b"a" * (archives.MAX_MEMBER_BYTES + 1), "too_large"),
        (tar(*((f"{n}.tex", b"") for n in range(archives.MAX_MEMBERS + 1))), "too_large"),
    ],
    # Names without the bytes: gzip writes the time of day into them.
    ids=lambda value: value if isinstance(value, str) else "package",
)
def test_what_is_no_latex_package_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    assert reason_of(data) == reason


def test_a_gzip_bomb_is_left_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TOTAL_BYTES", 8 * 2**20)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(2**20)
    bomb = b"".join(packer.compress(block) for _ in range(10)) + packer.flush()
    assert len(bomb) < 2**15  # of 10 MiB
    assert reason_of(bomb) == "too_large"


def test_gzip_members_in_a_row_are_one_stream_and_padding_is_none() -> None:
    assert gunzip(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(512)) == b"one two"
    assert gunzip(gzip.compress(b"")) == b""


def test_gzip_members_without_end_are_not_followed() -> None:
    assert reason_of(gzip.compress(b"") * (archives.MAX_GZIP_MEMBERS + 1)) == "bad_archive"


def test_a_chain_of_long_names_does_not_end_the_crawl() -> None:
    link = tarfile.TarInfo("././@LongLink")
    link.type, link.size = tarfile.GNUTYPE_LONGNAME, 4
    chain = (link.tobuf(tarfile.GNU_FORMAT) + b"abc".ljust(tarfile.BLOCKSIZE, b"\0")) * 3_000
    assert reason_of(chain + tar(("a.tex", TEX))) == "bad_archive"


def test_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    read_package(gzip.compress(tar(("a.tex", TEX), ("b/c.tex", TEX))), (".tex",))
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=70, deadline=None)
@given(st.data())
def test_damage_of_any_kind_is_a_reason_not_a_crash(data: st.DataObject) -> None:
    info = tarfile.TarInfo("long" * 40 + ".tex")
    info.pax_headers = {"comment": "x", "GNU.sparse.major": "1"}
    good = bytearray(tar((info, TEX), (special(tarfile.SYMTYPE), b""), ("a.tex", TEX)))
    for _ in range(data.draw(st.integers(1, 8))):
        good[data.draw(st.integers(0, 3000))] = data.draw(st.integers(0, 255))
    whole = bytes(good[: data.draw(st.integers(0, len(good)))])
    try:
        files = read_package(data.draw(st.sampled_from([whole, gzip.compress(whole)])), (".tex",))
    except ItemUnavailable as error:
        assert error.reason in {"bad_archive", "unsafe_path", "no_tex", "too_large"}
    else:
        assert all(".." not in name and not name.startswith("/") for name in files)
