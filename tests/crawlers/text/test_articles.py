import subprocess
import sys
from pathlib import Path

import pytest

from crawlers.text.articles import MAX_CHARS, to_line, to_text
from crawlers.text.cleaning import clean
from tests.crawlers.conftest import refused

P = "<p>Kept.</p>"
REPOSITORY = Path(__file__).resolve().parents[3]


def test_paragraphs_headings_lists_and_quotations_are_blocks_of_their_own() -> None:
    html = (
        "<h2 id=a>Head</h2>\n\n<p>One\n   <b>bold</b>&nbsp;word<br>next&#8217;s &amp; last</p>"
        "<ul>\n <li>first</li><li>second<ol><li>inner</li></ol></li></ul>"
        "<blockquote><p>Said.</p></blockquote>loose text<div>in a div</div>"
    )
    assert to_text(html).split("\n\n") == [
        "Head", "One bold word\nnext’s & last", "first", "second", "inner", "Said.", "loose text",
        "in a div",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>", "<style>p{}</style>", "<noscript>turn it on</noscript>",
        "<nav><ul><li>Home</li></ul></nav>", "<aside>aside</aside>", "<footer>foot</footer>",
        "<figure><img><figcaption><p>caption</p></figcaption></figure>",
        '<div class="wp-caption"><img><p class="wp-caption-text">caption</p></div>',
        '<blockquote class="twitter-tweet"><p>tweet</p>&mdash; A</blockquote>',
        '<iframe src="x">no frames</iframe>', "<table><tr><td>1</td></tr></table>",
        '<div class="sharedaddy x"><a>Share</a></div>', "<form><label>Mail</label></form>",
        '<p hidden>hidden</p>', '<p style="color:red;DISPLAY : none">hidden</p>',
        '<p aria-hidden="TRUE">hidden</p>', "<!-- comment -->", "<svg><text>drawn</text></svg>",
        '<div class="contact"><p>Call us</p></div>', "<p><s>struck</s> <del>out</del></p>",
        '<section class="gem-c-attachment">PDF</section>',
        '<p>Read more: <a href="/x">An older story</a></p>', '<p><a href="/x">Read more</a></p>',
        '<h3>Related stories:</h3><ul><li><a href="/x">One</a></li><li><a>Two</a></li></ul>',
        '<div class="footnotes"><ol><li>1. note</li></ol></div>', "<template><p>t</p></template>",
    ],
)  # fmt: skip
def test_what_is_no_prose_is_left_out(html: str) -> None:
    assert to_text(f"{P}{html}{P}") == "Kept.\n\nKept."


@pytest.mark.parametrize(
    "html",
    [
        "Read more: this sentence links <a>one word</a> only, so it stays.",
        "See also how the town changed.", "<a href='/x'>All of it is a link</a>",
        "Related: the council met again, people said.",
    ],
)  # fmt: skip
def test_a_sentence_that_begins_like_a_pointer_is_kept(html: str) -> None:
    assert len(to_text(f"<p>{html}</p>")) > 15


def test_unclosed_and_crossed_tags_lose_no_text() -> None:
    html = "<p>One <b>two <i>three</b> four</i><p>five<li>six</div></span><p>seven"
    assert to_text(html).split() == ["One", "two", "three", "four", "five", "six", "seven"]


def test_no_markup_and_no_control_character_survives() -> None:
    html = (
        '<p onclick="x()">A<a href="javascript:alert(1)">link</a>\x00\x1b[31m\u202e&#0;&#27;'
        "&lt;script&gt;alert(2)&lt;/script&gt;</p><p>B &#x202e; C\ufeff</p>"
    )
    text = clean(to_text(html))
    assert "script" not in text and "alert" not in text
    assert not {*text} & {"\0", "\x1b", "\u202e", "\ufeff"}
    assert text.startswith("Alink")


def test_a_heading_is_one_line() -> None:
    heading = "A &amp; B<br>the <em>second</em> &#8217;line&lt;b&gt;\n x "
    assert to_line(heading) == "A & B the second ’line x"
    assert to_line("5 < 6 and 7 > 3") == "5 < 6 and 7 > 3"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        *((html, "") for html in ("", "   \n", "\x00", "<!-- -->", "<p></p>", "<html>")),
        ('<meta charset="utf-16"><p>na\u00efve \u2013 \U0001f600</p>', "naïve – 😀"),
        ('<p>It<sup class="footnote"><a href="#fn:1">[footnote 1]</a></sup> is.</p>', "It is."),
    ],
)
def test_odd_pages(html: str, text: str) -> None:
    assert to_text(html) == text


def test_hostile_pages_take_no_more_memory_than_their_length_allows() -> None:
    """Run in its own process, to measure its peak with the memory of libxml2."""
    code = (
        "import re, sys\nfrom pathlib import Path\n"
        "from crawlers.text.articles import MAX_CHARS, to_text\n"
        # The figure of getrusage begins with the size of the process that started this one.
        "status = Path('/proc/self/status')\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1])\n"
        "before = peak()\n"
        "for piece in sys.argv[1:]:\n    to_text((piece * (MAX_CHARS // len(piece))))\n"
        "to_text('<p ' + 'a=1 ' * (MAX_CHARS // 4 - 1) + '>')\n"
        "print((peak() - before) // 1024)"
    )
    pieces = ["<div></div>", "<p a=1 b=2>x", "\U0001f600<p>"]
    command = [sys.executable, "-c", code, *pieces]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert int(done.stdout) < 200, "MiB"


def test_a_page_beyond_the_cap_is_too_large() -> None:
    with refused("too_large", "at most 1000000"):
        to_text("x" * (MAX_CHARS + 1))


def test_elements_nested_too_deep_are_a_parse_error() -> None:
    assert to_text("<b>" * 900 + "x" + "</b>" * 900) == "x"
    with refused("parse_error", "more than 1000 open elements"):
        to_text("<b>" * 10_000 + "</i>" * 10_000)
