import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlers.contract import Drop
from crawlers.imports.dating import Dating
from crawlers.imports.documents import ImportOptions
from crawlers.imports.tables import DataFile
from extras.web_archives.epub import read_epub
from tests.crawlers.imports.test_sets import Imports, imports, long, write

__all__ = ["imports"]
CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>
<rootfile full-path="OEBPS/package.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Tides</dc:title>
<dc:language>en</dc:language><dc:date>2024-05-03</dc:date></metadata>
<manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="two" href="text/chapter%202.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="map" href="map.svg" media-type="image/svg+xml"/>
</manifest>
<spine><itemref idref="nav"/><itemref idref="one"/><itemref idref="map"/><itemref idref="two"/>
<itemref idref="lost"/></spine></package>"""


def chapter(mark: str) -> str:
    page = f"<p>{long(mark)} caf&#233; <i>sea</i></p>"
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{page}</body></html>'


def epub(**changes: str | bytes | None) -> bytes:
    parts: dict[str, str | bytes | None] = {
        "META-INF/container.xml": CONTAINER, "OEBPS/package.opf": PACKAGE,
        "OEBPS/nav.xhtml": chapter("nav"), "OEBPS/text/one.xhtml": chapter("one"),
        "OEBPS/text/chapter 2.xhtml": chapter("two"), **changes,
    }  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, content in parts.items():
            if content is not None:
                book.writestr(name, content)
    return out.getvalue()


@pytest.mark.smoke
def test_books_and_texts(imports: Imports, tmp_path: Path) -> None:
    write(tmp_path / "tides.epub", epub())
    write(tmp_path / "notes" / "a.txt", "\ufeff" + long("notes"))
    write(tmp_path / "notes" / "b.txt", b"abc\xff")
    write(tmp_path / "notes" / "long.md", "x" * 5000)
    options = ImportOptions(Dating(is_undated=True), max_document_bytes=4000)
    found = imports(tmp_path, options=options)
    rows = {row["native_id"]: row for row in found.rows["undated"]}
    assert list(rows) == ["notes/a.txt", "tides.epub:0", "tides.epub:1"]
    assert rows["tides.epub:0"]["text"] == f"{long('one').strip()} caf\u00e9 sea"
    assert rows["tides.epub:1"]["text"].startswith("two: ")
    assert {rows[f"tides.epub:{i}"]["cluster_id"] for i in (0, 1)} == {"tides.epub"}
    assert (rows["tides.epub:0"]["title"], rows["tides.epub:0"]["language"]) == ("Tides", "en")
    assert rows["notes/a.txt"]["text"] == long("notes")
    assert sorted(found.reasons) == ["damaged", "too_long"]
    assert "notes/b.txt: byte 3 (0xff) is not UTF-8" in found.details
    dated = imports(tmp_path / "tides.epub")
    assert dated.texts == {"2024-05": ["one", "two"]}


LARGE = [f"large{number}" for number in range(9)]
ITEM = '<item id="{0}" href="text/{0}" media-type="application/xhtml+xml"/>'


def many() -> dict[str, str]:
    """Return chapters of 300 MB."""
    items = "".join(map(ITEM.format, LARGE))
    references = "".join(f'<itemref idref="{name}"/>' for name in LARGE)
    package = PACKAGE.replace("</manifest>", f"{items}</manifest>")
    package = package.replace("</spine>", f"{references}</spine>")
    return {"OEBPS/package.opf": package, **{f"OEBPS/text/{name}": " " * 2**25 for name in LARGE}}


BOMB = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><package>&c;</package>'


@pytest.mark.parametrize(
    ("make", "num_rows", "says"),
    [
        (lambda: epub()[:-30], 0, "no EPUB, or damaged"),
        (lambda: b"", 0, "no EPUB, or damaged"),
        (lambda: epub(**{"META-INF/container.xml": None}), 0, "META-INF/container.xml"),
        (lambda: epub(**{"META-INF/container.xml": "<container/>"}), 0, "names no package"),
        (lambda: epub(**{"OEBPS/package.opf": BOMB}), 0, "EntitiesForbidden"),
        (lambda: epub(**{"OEBPS/text/one.xhtml": None}), 1, "chapter 0 (OEBPS/text/one.xhtml)"),
        (lambda: epub(**{"OEBPS/text/one.xhtml": b"\x81" * 99}), 1, "in no known encoding"),
        (lambda: epub(**many()), 0, "chapters of 30"),
        (
            lambda: epub(**{"OEBPS/text/one.xhtml": b" " * (33 * 2**20)}),
            1,
            "at most 33554432 are read",
        ),
    ],
)
def test_damaged_books(make: Callable[[], bytes], num_rows: int, says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.epub", make())
    found = list(read_epub(DataFile(path, "a.epub", 2**20), ()))
    [drop] = [each for each in found if isinstance(each, Drop)]
    assert len(found) == num_rows + 1
    assert drop.reason == "damaged" and says in drop.detail


def without_flag_of_utf8(data: bytes) -> bytes:
    """Clear bit 11 of the flags in all heads, local (at byte 6) and central (at byte 8)."""
    changed = bytearray(data)
    for head, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.find(head)
        while at >= 0:
            changed[at + place + 1] &= ~0x08
            at = data.find(head, at + 4)
    return bytes(changed)


@pytest.mark.parametrize(
    ("part", "href"),
    [
        ("OEBPS/m\u00e8re.xhtml", "m\u00e8re.xhtml"), ("OEBPS/me\u0300re.xhtml", "m\u00e8re.xhtml"),
        ("OEBPS/Chapter.xhtml", "chapter.XHTML"), ("one.xhtml", "../one.xhtml"),
        ("OEBPS/one.xhtml", "/OEBPS/one.xhtml"), ("OEBPS/one.xhtml", "./one.xhtml#start"),
    ],
    ids=["no flag", "not composed", "letter case", "folder above", "absolute", "fragment"],
)  # fmt: skip
def test_parts_that_are_referred_to_by_another_name(part: str, href: str, tmp_path: Path) -> None:
    package = PACKAGE.replace("text/one.xhtml", href)
    changed = {"OEBPS/package.opf": package, "OEBPS/text/one.xhtml": None, part: chapter("one")}
    path = tmp_path / "a.epub"
    path.write_bytes(without_flag_of_utf8(epub(**changed)))
    first, *_ = read_epub(DataFile(path, path.name, 2**20), ["text"])
    assert not isinstance(first, Drop), first
    assert str(first.values["text"]).startswith(long("one")[:40])


def test_a_page_that_is_named_again_is_read_once(tmp_path: Path) -> None:
    again = '<itemref idref="one"/>' * 50
    book = epub(**{"OEBPS/package.opf": PACKAGE.replace("</spine>", f"{again}</spine>")})
    path = tmp_path / "tides.epub"
    path.write_bytes(book)
    rows = list(read_epub(DataFile(path, "tides", 10**6), ()))
    assert len([row for row in rows if not isinstance(row, Drop)]) == 2
