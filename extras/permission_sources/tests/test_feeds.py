"""Feeds and sitemaps: their entries, in each encoding and packing."""

import datetime as dt
import gzip
import html

import pytest

from benchmarks.fuzzing.nesting import Parser
from core.errors import SourceChanged
from crawlers.web.raw_cache import Fetched
from extras.permission_sources.feeds import ListedPage, read_feed
from tests.crawlers.text.test_nesting import FREE_CALLS, MOST_TIMES, SIZE, num_calls

NOW = dt.datetime(2024, 7, 1, tzinfo=dt.UTC)
JUNE = dt.datetime(2024, 5, 31, 22, 30, tzinfo=dt.UTC)


def entries(body: bytes, **headers: str) -> list[ListedPage]:
    return read_feed(Fetched("http://x/feed", headers, body, NOW))


def test_a_field_belongs_to_the_innermost_entry() -> None:
    inner = "<item><link>b</link><pubDate>Sat, 01 Jun 2024 00:30:00 +02:00</pubDate></item>"
    body = f"<rss><item><title>x</title>{inner}<link>a</link><link>c</link></item></rss>"
    assert entries(body.encode()) == [ListedPage("a", None, False), ListedPage("b", JUNE, False)]


def test_atom_and_sitemaps() -> None:
    atom = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><source><link href='no'/></source>"
        "<link href='a'/><published>2024-06-01T00:30:00+02:00</published></entry></feed>"
    )
    assert entries(atom.encode()) == [ListedPage("a", JUNE, False)]
    news = (
        "<urlset xmlns:n='n'><url><loc> a </loc><n:news><n:publication_date>2024-05-31T22:30Z"
        "</n:publication_date></n:news></url></urlset>"
    )
    assert entries(news.encode()) == [ListedPage("a", JUNE, False)]
    index = b"<sitemapindex><sitemap><loc>b</loc></sitemap></sitemapindex>"
    for body in (index, gzip.compress(index), gzip.compress(gzip.compress(index))):
        assert entries(body) == [ListedPage("b", None, True)]
    with pytest.raises(SourceChanged, match="no feed"):
        entries(gzip.compress(index)[:-20])


@pytest.mark.parametrize(
    ("before", "date"),
    [
        ("", "<dc:date>2024-06-01T00:30:00+02:00</dc:date>"),  # RSS 1.0
        ("", "<pubDate>Sa, 01 Jun 2024 00:30:00 +0200</pubDate>"),
        ("\n\n", "<pubDate>Sat, 01 Jun 2024 00:30:00 +0200</pubDate>"),
        ("\ufeff \r\n", "<pubDate>Sat, 01 Jun 2024 00:30:00 +0200</pubDate>"),
    ],
)
def test_feeds_as_some_sites_write_them(before: str, date: str) -> None:
    item = f"<item xmlns:dc='http://purl.org/dc/elements/1.1/'><link>a</link>{date}</item>"
    body = f"{before}<?xml version='1.0' encoding='utf-8'?><rss>{item}</rss>"
    assert entries(body.encode()) == [ListedPage("a", JUNE, False)]


@pytest.mark.parametrize(
    "more",
    [
        "<title>a&nbsp;b &eacute;</title>",
        "<title>salt & pepper &; &nosuchname; &#1114112; &#55296; &#8;</title>",
        "<content:encoded>text</content:encoded>",
        "<title>\x08\x0b\ufffe</title>",
        "<title>&</title><description><![CDATA[a & b &nbsp; <br>]]>&nbsp;</description>",
    ],
)
def test_faults_that_readers_of_feeds_put_up_with(more: str) -> None:
    item = f"<item><link>a?b=1&c=2</link><pubDate>1 Jun 2024 00:30 +0200</pubDate>{more}</item>"
    assert entries(f"<rss>{item}</rss>".encode()) == [ListedPage("a?b=1&c=2", JUNE, False)]
    section = "<item><link><![CDATA[a?b=1&amp=2]]></link><a>&</a></item>"
    assert entries(f"<rss>{section}</rss>".encode()) == [ListedPage("a?b=1&amp=2", None, False)]
    for cut in ("<rss><item>&nbsp;", "<rss><item/></rss><rss/>&", "<html>&nbsp;</html>"):
        with pytest.raises(SourceChanged):
            entries(cut.encode())


def test_sections_that_were_escaped() -> None:
    link = "<![CDATA[ a ]]>"
    date = "<![CDATA[1 Jun 2024 00:30 +0200]]>"
    item = f"<link>{html.escape(link)}</link><pubDate>{html.escape(date)}</pubDate>"
    assert entries(f"<rss><item>{item}</item></rss>".encode()) == [ListedPage("a", JUNE, False)]


@pytest.mark.parametrize("codec", ["gb2312", "euc-kr", "shift_jis", "utf-16", "windows-1251"])
def test_feeds_are_in_any_encoding(codec: str) -> None:
    body = f"<?xml version='1.0' encoding='{codec}'?><rss><item><link>a\u042f</link></item></rss>"
    assert entries(body.encode(codec)) == [ListedPage("a\u042f", None, False)]


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<item>", "</item>"),
        ("<item><link href='a'/>", "</item>"),
        ("<url><entry>", "</entry></url>"),
    ],
)
def test_entries_within_entries_are_found_at_any_depth(opening: str, closing: str) -> None:
    body = f"<rss>{opening * 2000}{closing * 2000}</rss>"
    assert len(entries(body.encode())) == 2000 * opening.count("<") - 2000 * opening.count("/>")


UNITS = [
    ("<item>", "</item>"), ("<entry>", "</entry>"), ("<url>", "</url>"),
    ("<sitemap>", "</sitemap>"), ("<item><link href='a'/><pubDate>x</pubDate>", "</item>"),
    ("<item><a/>", "</item>"), ("<a:item xmlns:a='b'>", "</a:item>"),
    ("<item><entry>", "</entry></item>"), ("<item/>", ""), ("<item><title>x</title></item>", ""),
    ("<item>&nbsp;", "</item>"), ("<b:item>", "</b:item>"), ("<item><![CDATA[", "&]]></item>"),
    ("<item>&a", "</item>"), ("<item/>&;<a:b/>", ""), ("<![CDATA[", ""), ("&#1114112;", ""),
    ("<item><link/>", "<link/></item>"), ("<urlset><url><loc>a</loc>", "</url></urlset>"),
    ("<sitemapindex><sitemap><loc>a</loc>", "</sitemap></sitemapindex>"),
]  # fmt: skip


@pytest.mark.smoke
def test_work_is_linear_in_depth() -> None:
    parser = Parser(lambda text: entries(text.encode()), UNITS, "<rss>", "</rss>")
    for short, long in zip(parser.inputs(SIZE), parser.inputs(2 * SIZE), strict=True):
        num_calls(parser.read, short[1])  # caches of expressions and codecs are filled
        once = num_calls(parser.read, short[1])
        twice = num_calls(parser.read, long[1])
        assert twice <= MOST_TIMES * once + FREE_CALLS, short[0]
