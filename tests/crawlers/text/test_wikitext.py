import mwparserfromhell
import pytest

from core.month import Month
from crawlers.text.wikitext import CLOSING_SECTIONS, MAX_CHARS, MAX_NESTING, is_redirect, to_text
from simulator.wiki import article
from simulator.world import World
from tests.crawlers.conftest import refused

ARTICLE = """{{Infobox river|name=Rhine|length={{convert|288|km|mi}}}}
The '''Rhine''' is a [[river]] in [[Switzerland|the Swiss]] ''plateau''.<ref name="x">{{cite book
|title=Rivers [[of]] Europe}}</ref> It is [http://example.org navigable] in part.<ref name="x"/>

== Course ==
It passes [[Bern]]<!-- capital -->, [[:Category:Lakes|some lakes]] and Biel.
* First item with '''weight'''
* Second item

{| class="wikitable"
! Town !! Height
|-
| Thun || {{convert|560|m|ft}}
|}

[[File:Rhine.jpg|thumb|left|The river at [[Thun]] {{circa|1900}}]]
[[Category:Rivers of Switzerland]]
"""


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("plain", "plain"),
        ("'''bold''' ''it'' '''''both''''' it's", "bold it both it's"),
        ("[[a]] [[a|b]] [[a|b|c]] [[:Category:X]] x[[a]]s", "a b b|c Category:X xas"),
        ("[[File:a.png|thumb|see [[b|c]] and [http://d e]]]x", "x"),
        ("[[image:a.png]][[ Category:Y ]]x", "x"),
        ("[https://a.example b c] [https://a.example] https://a.example", "b c https://a.example"),
        ("a{{b|c={{d}}|{{{e|f}}}}}g{{{h|{{i}}}}}j", "agj"),
        ('a<ref>b {{c}} </ref>d<ref name=e />f<ref group="g">h</ref>', "adf"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<div class='x'>a</div><span\nid=1>b</span><SUP>2</SUP>", "a\nb2"),
        ("a<ul><li>b</li><LI>c</li></ul>d", "a\nb\nc\nd"),
        ("<nowiki>[[a]] {{b}} ''c''</nowiki> <math>x<y</math>", "[[a]] {{b}} ''c'' $x<y$"),
        ("a <math>x^{y_{z}}</math> b", "a $x^{y_{z} }$ b"),
        (":<math>x\n= y</math>", "$x = y$"),
        ("a <source>x = 1</source> b\n<source>\nx = 2\n</source>", "a x = 1 b"),
        ("<gallery>\na.jpg|b\n</gallery>c", "c"),
        ("a<!-- b\n\n c -->d<!-- never closed", "ad"),
        ("{|\n| a\n{|\n| b\n|}\n|}\nc", "c"),
        (":{| class=x\n|-\n|}\nc {{#if:x|}}", "c"),
        ("a &amp; b&nbsp;c &lt;d&gt; &#233;", "a & b c <d> é"),
        ("__NOTOC__a__b__", "a__b__"),
        ("* a\n** b\n# c\n; d\n: e\n----\nf", "a\nb\nc\nd\ne\n\nf"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("a\n== H ==\nb\n===I===\nc", "a\n\nH\n\nb\n\nI\n\nc"),
        ("a\n==References==\nb\n===Sub===\nc\n==Later==\nd", "a\n\nLater\n\nd"),
        ("a\n== See also ==\nb\n= Top =\nc", "a\n\nTop\n\nc"),
        ("== ==\n=\n==\n== a", "=\n==\n== a"),
        ("a [[b\n\nc]] d", "a b\n\nc d"),
        ("a ]] b c ] d [[e", "a b c ] d e"),
        ("Good. A | b = c }} deep. Kept.", "Good. Kept."),
        ("{{start}}\n|-\n| a || b\n|}\nc", "c"),
        ("a\n[[de:A]]\n[[zh-min-nan:A]]\n[[w:b|c]] [[wikt:d|d]]", "a\nc d"),
        ("a<ref/> , b<ref>c</ref> . d . . . e", "a, b. d . . . e"),
        ("* a\n* {{b}}\n* c", "a\nc"),
        ("<ref>never closed. a <b>c", "never closed. a c"),
        ("{{a|" * MAX_NESTING + "}}" * MAX_NESTING + "b", "b"),
        ("İ<ref>x</ref>y", "İy"),
        ("", ""),
    ],
)
def test_takes_out_markup_and_keeps_prose(wikitext: str, text: str) -> None:
    assert to_text(wikitext) == text


@pytest.mark.parametrize("number", [None, *range(6)])
def test_agrees_with_mwparserfromhell(number: int | None) -> None:
    body = ARTICLE
    if number is not None:
        world = World(3, Month("2024-01"), Month("2024-01"))
        story = world.story(Month("2024-01"), "wikipedia_new", number * 3)
        body = article(story, world).split("== See also ==")[0]
    found = to_text(body)
    assert found.split() == _by_mwparserfromhell(body).split()
    assert "Thun" not in found


def _by_mwparserfromhell(wikitext: str) -> str:
    code = mwparserfromhell.parse(wikitext)
    unwanted = [*code.ifilter_templates(recursive=False)]
    unwanted += code.ifilter_tags(recursive=False, matches=lambda n: n.tag in ("ref", "table"))
    links = code.ifilter_wikilinks(recursive=False)
    unwanted += [link for link in links if str(link.title).startswith(("File:", "Category:"))]
    for node in unwanted:
        code.remove(node)
    return str(code.strip_code())


@pytest.mark.parametrize(
    ("wikitext", "why"),
    [
        ("x" * (MAX_CHARS + 1), "longer"),
        ("{{a " + "text " * 50, "without its end"),
        ("a\n{| class=x\n| b", "without its end"),
        ("{{a|" * (MAX_NESTING + 1) + "}}" * (MAX_NESTING + 1), "deep"),
    ],
)
def test_refuses_what_is_no_article(wikitext: str, why: str) -> None:
    with refused("parse_error", why):
        to_text(wikitext)


@pytest.mark.parametrize(
    "text",
    [
        "#REDIRECT [[A]]", " #redirect[[A]]", "# Redirect: [[A]]", "#WEITERLEITUNG [[A]]",
        "#REDIRECTION [[A]]", "#REDIRECCIÓN [[A]]", "#перенаправление [[А]]",
    ],
)  # fmt: skip
def test_recognises_a_redirect(text: str) -> None:
    assert is_redirect(text)
    assert not is_redirect(f"See {text}")
    assert not is_redirect("# Redirect lights were put up.\n# They were red.")
    assert not is_redirect("# Tam o' Shanter\n# [[Robert Burns]]")


def test_literatur_and_references_are_two_titles_each_of_which_ends_the_text() -> None:
    r"""A peer lacks the comma between "\nLiteratur" and "\nRéférences": neither is ever found."""
    for title in ("Literatur", "Einzelnachweise", "Weblinks", "Siehe auch"):
        assert to_text(f"Text.\n== {title} ==\nBuch", "de") == "Text."
    for title in ("Références", "Notes et références", "Liens externes", "Voir aussi"):
        assert to_text(f"Texte.\n== {title} ==\nLivre", "fr") == "Texte."


@pytest.mark.parametrize("language", sorted(CLOSING_SECTIONS))
def test_no_two_titles_of_sections_have_run_together(language: str) -> None:
    titles = CLOSING_SECTIONS[language]
    assert len(set(titles)) == len(titles)
    for title in titles:
        assert title == title.lower().strip() and len(title) <= 32
        assert to_text(f"a\n== {title.capitalize()} ==\nb\n== Z ==\nc", language) == "a\n\nZ\n\nc"
        parts = {other for other in titles if title.startswith(other) and title != other}
        rests = {title.removeprefix(part) for part in parts}
        assert not rests & set(titles)


@pytest.mark.parametrize("heading", ['<span id="References">References</span>', "'''References'''"])
def test_the_references_are_found_by_their_title_not_by_the_span_of_a_skin(heading: str) -> None:
    """A peer looks for ``span#References``, which newer headings do not have."""
    assert to_text(f"Text.\n== {heading} ==\n* A book") == "Text."


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("{{w|Rhine}} and {{W|Lake Geneva|the lake}}", "Rhine and the lake"),
        ("{{w|Halle (river)|Halle|anchor=Course}}", "Halle"),
        ("{{w|The Lancet|lang=en|''The Lancet''}}", "The Lancet"),
        ("{{w|a|{{w|b}}}}{{y|{{w|c}}}}{{w}}{{ww|d}}", "b"),
        ("{{w|2 + 2 {{=}} 4}}", "2 + 2 = 4"),
    ],
)
def test_templates_that_stand_for_their_words_show_them(wikitext: str, text: str) -> None:
    assert to_text(wikitext, shown_templates=frozenset({"w"})) == text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("''Star'''s and ''Sun'''s '''crew'''", "Star's and Sun's crew"),
        ("''Star''<nowiki/>'s '''A''' ''b''", "Star's A b"),
        ("l'''Étoile'' '''de''' mer", "l'Étoile de mer"),
        ("the dogs''' ''food'''''", "the dogs food"),
        ("''''a'''' ''''''b''''''", "'a' 'b'"),
        ("''a\nb'' c", "a\nb c"),
        ("rock 'n' roll's", "rock 'n' roll's"),
    ],
)
def test_an_apostrophe_beside_marks_of_type_stays(wikitext: str, text: str) -> None:
    assert to_text(wikitext) == text


def test_files_and_categories_are_taken_out_in_every_language() -> None:
    hidden = "[[Datei:A.jpg|mini|b]][[Kategorie:C]][[Fichier:D.png]][[Catégorie:E]][[Archivo:F]]"
    assert to_text(f"a{hidden}b") == "ab"


def test_a_number_too_long_to_be_a_character_stays() -> None:
    assert to_text("a &#" + "9" * 5000 + "; &#65;") == "a #" + "9" * 5000 + "; A"
