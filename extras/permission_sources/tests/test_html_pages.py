from pathlib import Path

import pytest

from core.corpus.partition import read_documents
from core.errors import EmptyPartition, UsageError
from core.storage.store import Store
from crawlers.imports.sets import import_set
from crawlers.imports.texts import options_for_pages
from crawlers.text.pages import read_page
from extras.permission_sources import ao3, bbc

PROSE = "The council met on Monday and agreed on the budget of the town for the coming year. " * 3


def page(head: str, body: str = f"<article><h1>A title</h1><p>{PROSE}</p></article>") -> str:
    return f"<!DOCTYPE html><html><head>{head}</head><body><nav>Menu</nav>{body}</body></html>"


def json_ld(value: str) -> str:
    return f'<script type="application/ld+json">{value}</script>'


def test_each_month_of_the_pages_dates_is_sealed(tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "saved"
    (folder / "more").mkdir(parents=True)
    graph = json_ld('[{"@graph": [{"datePublished": "2024-03-31T23:30:00-02:00"}]}]')
    meta = '<meta property="article:published_time" content="2024-02-08T10:00:00Z">'
    files = {
        "a.html": page(meta + '<link rel="canonical" href="https://example.org/a">'),
        "b.html": page(meta, f"<main><p>{PROSE} And more.</p></main>"),
        "more/c.htm": f'<?xml version="1.0" encoding="utf-8"?>{page(graph)}',
        "undated.html": page(""),
        "login.html": page(meta, "<div><p>Please log in</p></div>"),
        "future.html": page(json_ld('{"datePublished": "2999-01-01"}')),
        "notes.txt": "no page",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    seals = import_set([folder], "bbc", store, options_for_pages("bbc")).seals
    assert [str(seal.partition.month) for seal in seals] == ["2024-02", "2024-04"]
    assert seals[0].manifest["dropped"] == {"empty": 1, "no_date": 2}  # 2999 is no date
    rows = [row for table in read_documents(store, seals[0]) for row in table.to_pylist()]
    assert {row["native_id"] for row in rows} == {"a.html", "b.html"}
    first = next(row for row in rows if row["native_id"] == "a.html")
    assert first["url"] == "https://example.org/a"
    assert first["text"] == f"A title\n\n{PROSE.strip()}"
    assert first["licence"] == "LicenseRef-BBC"
    assert import_set([folder], "bbc", store, options_for_pages("bbc")).seals == seals


def test_pages_in_the_shapes_of_sites() -> None:
    figure = "<div data-component='image-block'><figcaption>Image source, Agency</figcaption></div>"
    text = f"<div data-component='text-block'><p>{PROSE}</p></div>"
    html = f"<article><h1>A title</h1>{figure}{text}<p>More</p></article>"
    assert read_page(html, bbc.ELEMENTS).text == PROSE.strip()
    days = "<dd class='published'>2024-02-08</dd><dd class='status'>2024-03-01</dd>"
    notes = "<div class='notes module'><blockquote class='userstuff'>A note.</blockquote></div>"
    text = f"<div class='userstuff module'><h3 id='work'>Chapter Text</h3><p>{PROSE}</p></div>"
    html = f"<dl class='stats'>{days}</dl><div id='chapters'><div>{notes}{text}</div></div>"
    page = read_page(html, ao3.ELEMENTS)
    stated = [f"{each:%Y-%m-%d}" for each in (page.published, page.changed) if each]
    assert (page.text, stated) == (PROSE.strip(), ["2024-02-08", "2024-03-01"])


def test_a_folder_without_a_usable_page_says_why(tmp_path: Path, store: Store) -> None:
    (tmp_path / "x.mhtml").write_text("MIME-Version: 1.0", encoding="utf-8")
    with pytest.raises(UsageError, match=r"holds no page \(\.html, .*save pages as HTML"):
        import_set([tmp_path], "quora", store, options_for_pages("quora"))
    (tmp_path / "x.html").write_text("<html><body><p>Consent</p></body></html>", encoding="utf-8")
    with pytest.raises(EmptyPartition, match=r"no_date.*x\.html: the date is None"):
        import_set([tmp_path], "quora", store, options_for_pages("quora"))


@pytest.mark.parametrize("charset", ["cp1252", "utf-16", "shift_jis"])
def test_pages_keep_their_characters(charset: str, tmp_path: Path, store: Store) -> None:
    text = {"shift_jis": "\u6c34 "}.get(charset, "\u20ac ") + PROSE
    head = f'<meta charset="{charset}"><meta name="date" content="2024-02-08">'
    (tmp_path / "x.html").write_bytes(page(head, f"<main>{text}</main>").encode(charset))
    [seal] = import_set([tmp_path], "bbc", store, options_for_pages("bbc")).seals
    [table] = read_documents(store, seal)
    assert table["text"].to_pylist() == [text.strip()]


def test_deeply_nested_pages_end(tmp_path: Path, store: Store) -> None:
    nested = "<div>" * 20_000 + PROSE
    meta = '<meta name="date" content="2024-02-08">'
    (tmp_path / "x.html").write_text(page(meta, nested), encoding="utf-8")
    found = import_set([tmp_path], "quora", store, options_for_pages("quora"))
    assert not found.seals and "'empty': 1" in found.failures[0]


def test_an_article_within_an_article_is_read_once() -> None:
    html = "<article><p>Text</p><article><p>Comment</p></article></article>"
    assert read_page(html).text == "Text\n\nComment"
    assert read_page(html.replace("article", "main")).text == "Text\n\nComment"
