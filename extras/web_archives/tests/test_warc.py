"""Web archives: real ones of warcio's tests (data/, Apache-2.0), and archives built here."""

import dataclasses
import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

import brotli
import pytest
import zstandard

from crawlers.imports.dating import Dating
from crawlers.imports.documents import ImportOptions
from crawlers.imports.tables import DataFile, Row
from extras.web_archives.warc import read_archive
from tests.crawlers.imports.test_sets import BY_DATE, Imports, imports, write
from tests.tiers import needs_extra

pytestmark = needs_extra("import_sets")  # it filters the texts of archives
DATA = Path(__file__).parent / "data"
__all__ = ["imports"]
STORIES = {
    "harbour": "The harbour of the old town was rebuilt after the storm, and ships came back.\n\n"
    "Its wardens say that the new wall will hold for the next hundred years of winters.",
    "museum": "A museum of clocks has opened in the mill by the river, free for schools.\n\n"
    "Most of the pieces were found in the attics of the village, and mended by their owners.",
    "hafen": "Der Hafen der alten Stadt wurde neu gebaut, und die Schiffe kehren zurück.\n\n"
    "Die Wärter sagen, dass die neue Mauer die nächsten hundert Winter überstehen wird.",
}


def record(
    kind: str, url: str, body: bytes, date: str = "2024-05-03T04:05:06Z", **more: str
) -> bytes:
    headers = {"WARC-Type": kind, "WARC-Target-URI": url, "WARC-Date": date, **more}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"WARC/1.0\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"


def page(
    story: str, published: str | None = None, charset: str = "utf-8", tag: str = "article"
) -> bytes:
    stated = json.dumps({"@type": "NewsArticle", "datePublished": published})
    script = f'<script type="application/ld+json">{stated}</script>' if published else ""
    paragraphs = "".join(f"<p>{each}</p>" for each in STORIES[story].split("\n\n"))
    nav = "<nav><p>Home</p></nav>"
    html = (
        f"<html><head><title>{story}</title>{script}</head><body>{nav}<{tag}>{paragraphs}</{tag}>"
    )
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    return head.encode() + html.encode(charset)


def url(name: str) -> str:
    return f"https://news.example/{name}"


def read(path: Path, **options: Any) -> tuple[list[str], list[str]]:
    """Return the first words of the texts, and reasons of drops."""
    texts = []
    drops = []
    for found in read_archive(DataFile(path, path.name, 2**20, **options), ()):
        if isinstance(found, Row):
            texts.append(" ".join(found.values["text"].split()[:2]))
        else:
            drops.append(f"{found.reason}: {found.detail}")
    return texts, drops


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("name", "texts", "drops"),
    [
        ("example.warc.gz", ["This domain"], []),  # the payload is packed by gzip
        ("example-iana.org-chunked.warc", ["The global"], []),
        ("example-wrong-chunks.warc.gz", ["This domain"], []),  # not chunked, although it says so
        ("example-trunc.warc", [], ["(byte 1197): the record is not of 973 bytes"]),
    ],
)
def test_real_archives(name: str, texts: list[str], drops: list[str]) -> None:
    found, dropped = read(DATA / name)
    assert found == texts
    assert len(dropped) == len(drops)
    assert all(says in drop for says, drop in zip(drops, dropped, strict=True))


def news(*records: bytes) -> bytes:
    return b"".join(map(gzip.compress, records))


def test_segments_and_pages_without_an_address_are_counted(tmp_path: Path) -> None:
    body = page("harbour")
    parted = {"WARC-Segment-Number": "1"}
    path = write(
        tmp_path / "a.warc",
        record("response", url("a"), body[:-200], **parted)
        + record("continuation", url("a"), body[-200:], **{"WARC-Segment-Number": "2"})
        + record("conversion", url("b"), b"Half of a text", **parted)
        + record("response", "", body)
        + record("response", url("c"), page("museum")),
    )
    texts, drops = read(path)
    assert len(texts) == 1
    assert [drop.partition(":")[0] for drop in drops] == ["damaged"] * 3


def test_cc_news_by_month_for_local_use(imports: Imports, tmp_path: Path) -> None:
    archive = news(
        record("warcinfo", "", b"operator: Common Crawl"),
        record("request", url("a"), b"GET /a"),
        record("response", url("a"), page("harbour", "2024-04-30T23:59:59+00:00")),
        record("response", url("b"), page("museum")),
        record("response", url("b"), page("museum"), "2024-05-09T00:00:00Z"),
        record("response", url("c"), page("hafen", "2024-05-02", "cp1252", "div")),
        record("response", url("d"), page("harbour", "2023-05-02")),
        record("response", "https://www.bbc.co.uk/e", page("harbour")),
        record("response", "https://notbbc.co.uk/f", b"HTTP/1.1 301 Moved\r\n\r\n"),
        record("response", url("g"), page("harbour"), **{"WARC-Truncated": "length"}),
    )
    path = write(tmp_path / "CC-NEWS-20240503000000-00001.warc.gz", archive)
    options = ImportOptions(Dating(), licence="CC0-1.0", denied_hosts=("bbc.co.uk",))
    found = imports(path, options=options)
    assert {m: [row["title"] for row in rows] for m, rows in found.rows.items()} == {
        "2024-04": ["harbour"], "2024-05": ["museum", "hafen"],
    }  # fmt: skip
    rows = [row for each in found.rows.values() for row in each]
    assert [row["language"] for row in rows] == ["en", "en", "de"]
    assert {row["licence"] for row in rows} == {"LicenseRef-unknown"}
    assert rows[2]["text"] == STORIES["hafen"]  # found as Windows-1252; without <article>
    assert sorted(found.reasons) == [
        "damaged", "exact_dup", "outside_month", "permission", "unknown_format",
    ]  # fmt: skip
    assert "published 2023-05-02, captured 2024-05-03" in found.details
    manifest = found.seals["2024-05"].manifest
    assert (manifest["use"], manifest["denied_hosts"]) == ("local", ["bbc.co.uk"])
    assert found.seals["2024-05"].is_local
    other = write(tmp_path / "CC-NEWS-20240504000000-00002.warc.gz", archive)
    assert imports(path, other, options=dataclasses.replace(options, replace=True)).texts == {
        "2024-04": found.texts["2024-04"], "2024-05": found.texts["2024-05"],
    }  # fmt: skip
    english = ImportOptions(Dating(), language="en", replace=True)
    assert imports(path, options=english).reasons.count("wrong_language") == 1


def wet(*texts: str, **more: str) -> bytes:
    pages = (record("conversion", url(str(i)), t.encode(), **more) for i, t in enumerate(texts))
    return b"".join(map(gzip.compress, pages))


def test_wet_is_sifted_as_by_ccnet(imports: Imports, tmp_path: Path) -> None:
    notice = "Subscribe to our newsletter No. {} — today!"
    texts = [f"{notice.format(i)}\n{text}" for i, text in enumerate(STORIES.values())]
    texts += ["too short, and of no use", "1 2 3 4 | " * 60]
    for month in "45":
        crawl = "CC-MAIN-2024-18-00001.warc.wet.gz"
        write(tmp_path / month / crawl, wet(*texts, date=f"2024-0{month}-03T00:00:00Z"))
    found = imports(tmp_path, options=ImportOptions(Dating(), language="en"))
    for month in ("2024-04", "2024-05"):
        assert [row["text"] for row in found.rows[month]] == [
            STORIES["harbour"], STORIES["museum"],
        ]  # fmt: skip
    assert found.reasons == ["too_short", "wrong_language", "low_quality"] * 2
    undated = imports(tmp_path / "4", options=ImportOptions(Dating(is_undated=True)))
    assert [row["language"] for row in undated.rows["undated"]] == ["en", "en", "de"]
    whole = imports(
        tmp_path / "5", options=ImportOptions(Dating(is_undated=True), sift=False, replace=True)
    )
    assert whole.rows["undated"][0]["text"].startswith("Subscribe to our newsletter No. 0")


@pytest.mark.parametrize("cut", [1, 50, 150])
def test_a_cut_archive_gives_what_came_before(cut: int, imports: Imports, tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc.gz", news(
        record("response", url("a"), page("harbour")), record("response", url("b"), page("museum")),
    )[:-cut])  # fmt: skip
    found = imports(path, options=BY_DATE)
    titles = [row["title"] for row in found.rows["2024-05"]]
    assert titles == (["harbour", "museum"] if cut == 1 else ["harbour"])
    assert "a.warc.gz: the packed file was cut after byte" in found.details


def test_a_small_payload_does_not_fill_the_memory(tmp_path: Path) -> None:
    bomb = brotli.compress(bytes(2**28), quality=1)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: br\r\n\r\n"
    path = write(tmp_path / "a.warc", record("response", url("a"), head + bomb))
    _, [drop] = read(path)
    size = int(re.findall(r"(\d+) characters of HTML", drop)[0])
    assert drop.startswith("too_large: ") and size < 2**27


def test_torn_records_lose_no_other(tmp_path: Path) -> None:
    one, two, three = (record("conversion", url(each), STORIES[each].encode()) for each in STORIES)
    middle = gzip.compress(two)
    broken = middle[:40] + b"\x00" * 30 + middle[70:]
    for name, data in {
        "length.wet": one + two.replace(b"Length: 1", b"Length: 9") + three,
        "no-length.wet": one + two.replace(b"Content-Length", b"Length") + three,
        "huge.wet": one + two.replace(b"Length: ", b"Length: 99999999") + three,
        "text.wet": one + b"some text\nand more\n" + three,
        "member.wet.gz": gzip.compress(one) + broken + gzip.compress(three),
        "not-utf-8.wet": one + two.replace(b"clocks", b"cl\xff\xffs") + three,
    }.items():
        texts, drops = read(write(tmp_path / name, data))
        assert (texts, name) == (["The harbour", "Der Hafen"], name)
        assert f"{name}" in drops[0] and any("byte" in drop for drop in drops)
    for name in ("empty.warc", "junk.warc.gz"):
        texts, drops = read(write(tmp_path / name, b"" if "empty" in name else b"\x1f\x8b junk"))
        assert (texts, len(drops)) == ([], 1 if "junk" in name else 0)


@pytest.mark.parametrize(
    "stated", ["", "; charset=iso-8859-1", '; charset="utf-8"', "; charset=x-no"]
)
def test_pages_whose_encoding_is_stated_wrongly(stated: str, tmp_path: Path) -> None:
    for charset in ("utf-8", "cp1252"):
        body = page("hafen", charset=charset).replace(b"text/html", f"text/html{stated}".encode())
        path = write(tmp_path / "a.warc", record("response", url("a"), body))
        [row] = read_archive(DataFile(path, "a", 2**20), ())
        assert isinstance(row, Row) and row.values["text"] == STORIES["hafen"]
    noise = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + b"\x81\x8d\x8f" * 99
    path = write(tmp_path / "b.warc", record("response", url("b"), noise))
    assert "damaged" in read(path)[1][0]


HTML = b"<html><article><p>" + b"The harbour was quiet. " * 20 + b"</p></article></html>"
PACKED = gzip.compress(HTML, mtime=0)
PACKED_TWICE = gzip.compress(PACKED, mtime=0)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"


def chunked(body: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"Transfer-Encoding: chunked\r\n\r\n%x;a=b\r\n" % len(body) + body + b"\r\n" + last


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        (chunked(HTML), ""),
        (chunked(HTML, b""), "chunks were cut short"),
        (chunked(HTML, b"ff\r\n<p>"), "chunks were cut short"),
        (chunked(HTML, b"?\r\n"), "chunks were cut short"),
        (b"Content-Length: %d\r\n\r\n" % len(HTML) + HTML, ""),
        (b"Content-Length: 9\r\n\r\n" + HTML, ""),  # a browser would not see more; we keep it
        (b"Content-Length: 9999\r\n\r\n" + HTML, ""),
        (b"Content-Length: 9999\r\n\r\n" + HTML[:-7], f"cut after {len(HTML) - 7} of 9999 bytes"),
        (
            b"Content-Encoding: gzip\r\n\r\n" + PACKED_TWICE,
            "",
        ),
        (b"\r\n" + PACKED, ""),
        (b"Content-Encoding: gzip, br\r\n\r\n" + brotli.compress(PACKED), ""),
        (b"Content-Encoding: br, gzip\r\n\r\n" + gzip.compress(brotli.compress(HTML)), ""),
        (b"Content-Encoding: identity\r\n\r\n" + HTML, ""),
        (b"Content-Encoding: gzip, br\r\n\r\n" + HTML, ""),  # undone before
        (b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(HTML), ""),
        (b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(HTML)[2:-4], ""),  # bare
        (b"Content-Encoding: deflate\r\n\r\n" + HTML, ""),
        (chunked(PACKED).replace(b": chunked", b": gzip, chunked"), ""),
        (
            b"Content-Encoding: gzip\r\n\r\n" + PACKED[:-30],
            "gzip that is cut",
        ),
    ],
)
def test_a_body_is_whole_or_a_counted_drop(rest: bytes, why: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc", record("response", url("a"), ANSWER + rest))
    texts, drops = read(path)
    assert texts == ([] if why else ["The harbour"])
    assert [why in drop and "damaged" in drop for drop in drops] == ([True] if why else [])


def test_records_with_fewer_blank_lines_are_whole(tmp_path: Path) -> None:
    records = [record("conversion", url(each), STORIES[each].encode()) for each in STORIES]
    for end in (b"", b"\r\n", b"\n", b"\n\n", b"\r\n" * 4):
        data = b"".join(each.removesuffix(b"\r\n\r\n") + end for each in records)
        texts, drops = read(write(tmp_path / "a.wet", data))
        assert texts == ["The harbour", "A museum", "Der Hafen"]
        assert not drops


def test_heads_as_some_servers_write_them(tmp_path: Path) -> None:
    bodies = [
        (ANSWER + b"\r\n" + HTML).replace(b"\r\n", b"\n"),
        b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER + b"\r\n" + HTML,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + ANSWER + b"\r\n" + HTML,
    ]
    for body in bodies:
        texts, drops = read(write(tmp_path / "a.warc", record("response", url("a"), body)))
        assert (texts, drops) == (["The harbour"], [])
    zstd = ANSWER + b"Content-Encoding: zstd\r\n\r\n" + zstandard.compress(HTML)
    texts, [drop] = read(write(tmp_path / "b.warc", record("response", url("b"), zstd)))
    assert texts == []
    assert drop.startswith("unknown_format: ") and "packed by zstd" in drop


def test_pages_are_in_the_encodings_that_browsers_know(tmp_path: Path) -> None:
    chinese = (
        "\u6731\u9555\u57fa\u8bf4\u201c\u4e2d\u56fd\u201d\u3002" * 30
    )  # the second sign is not in GB 2312
    html = f"<html><meta charset=gb2312><article><p>{chinese}".encode("gbk")
    path = write(tmp_path / "a.warc", record("response", url("a"), ANSWER + b"\r\n" + html))
    [row] = read_archive(DataFile(path, "a", 2**20), ())
    assert isinstance(row, Row) and row.values["text"] == chinese
