import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.text.articles import one_line, post_to_text
from crawlers.text.cleaning import clean


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("<p>One\nline.</p>\n\n<p>Two &amp; <b>bold</b>.</p>", "One line.\n\nTwo & bold."),
        ("First<p>Second<p>Third", "First\n\nSecond\n\nThird"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<pre class='x'><code>if a:\n    b\n</code></pre><p>after", "if a:\n    b\n\nafter"),
        ("<pre><code>  x\n\n  y\n</code></pre>", "  x\n\n  y"),
        ("<p>a</p><pre>never closed\n  x", "a\n\nnever closed\n  x"),
        ("<ul><li>a</li><li>b</li></ul>", "- a\n- b"),
        ("<ol><li><p>a</p></li><li><p>b</p></li></ol>c", "1. a\n\n2. b\n\nc"),
        ("<ul><li>a<ol><li>b</ol></ul>", "- a\n1. b"),
        ("</ul></li><li>a", "- a"),
        ("<table><tr><th>A<th>B<tr><td>1<td>2</table>", "A | B\n1 | 2"),
        ("a<img src='x' alt='b > c'>d<hr>e", "ad\n\ne"),
        ("<blockquote><p>q</p></blockquote><h2>h</h2>t", "q\n\nh\n\nt"),
        ("<SCRIPT>x<b>y</SCRIPT >a<style>b</style><!-- c --> d", "a d"),
        ("a<script>never closed", "a"),
        ("a<!-- never closed", "a"),
        ("&lt;b&gt; &#60;&#x3c; &nbsp;&hellip; &unknown; &", "<b> << … &unknown; &"),
        ("a\0b&#0;c", "ab\ufffdc"),
        ("Sj\u00e4tte <nobr>AP-fonden</nobr> ends", "Sj\u00e4tte AP-fonden ends"),
        ("<ruby>\u6f22<rp>(</rp><rt>kan</rt><rp>)</rp></ruby> x", "\u6f22(kan) x"),
        ("<acronym title='x'>a</acronym><data value='1'>b</data>", "ab"),
        ("", ""),
    ],
)
def test_a_post_becomes_what_a_reader_sees(markup: str, expected: str) -> None:
    assert post_to_text(markup) == expected


@pytest.mark.parametrize(
    "text",
    [
        "$a<b$ and $c>d$", "x <y and z> w", "#include <stdio.h>", "1 < 2 > 0", "<3", "<<EOF",
        "List<T>",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_tag_stays(text: str) -> None:
    assert post_to_text(text) == text


def test_formulas_stay_as_they_were_typed() -> None:
    markup = r"<p>For $a&lt;b$:</p><p>$$\begin{pmatrix} 1 &amp; 2 \\ 3 &amp; 4 \end{pmatrix}$$</p>"
    assert post_to_text(markup) == (
        "For $a<b$:\n\n" r"$$\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}$$"
    )


def test_a_title_is_one_line_without_tags() -> None:
    assert (
        one_line("A &quot;b&quot;\n <script>x</script>&lt;i class=x&gt;c&lt;/i&gt; ") == 'A "b" c'
    )


def test_a_character_reference_of_thousands_of_digits_is_none() -> None:
    assert post_to_text("&#" + "9" * 10_000 + ";").startswith("&#999")


@given(st.text(alphabet="<>/!-&;#x39abpreuliotd \n\"'", max_size=200))
def test_no_markup_breaks_the_reader(markup: str) -> None:
    assert isinstance(post_to_text(markup), str)
    assert "<script" not in clean(post_to_text(f"{markup}<script>x</script>"))
