import pytest

from crawlers.text.wikitext import to_text


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("It has {{unknown|nine towers}} today.", "It has nine towers today."),
        ("One {{unknown|a|b}} two. Three.", "Three."),
        ("One. Two costs ${{unknown|a|b}}. Three.", "One. Three."),
        ("He met Dr. A. {{unknown|a|b}} in St. Ives. Then he left.", "Then he left."),
        ('He met "{{unknown|a|b}}". Then.', "Then."),
        ("The sea.{{unknown|a|b}} It rose.", "The sea. It rose."),
        ("The sea. {{unknown|a|b}} It rose.", "The sea. It rose."),
        ("The sea{{unknown|a|b}} rose.", "The sea rose."),
        ("{{unknown|a|b}}'''The sea''' rose. {{unknown|a|b}}", "The sea rose."),
        ("{{unknown|a|b}} is the sea.", ""),
        ("Ida ({{unknown|a|b}}; born 1902) and Bo ({{unknown|a|b}}).", "Ida (born 1902) and Bo."),
        ("Ida ({{unknown|a|b}}, also Ada) left.", "Ida (also Ada) left."),
        ("Ida (born in {{unknown|a|b}}, 1902) left.", "Ida left."),
        ("A{{unknown|a|b}}{{unknown|a|b}} B {{unknown|c}} D.", "A B c D."),
        ("== {{unknown|a|b}} Title ==\nText", "Title\n\nText"),
        ("* {{USA}}\n* {{Norway}} – 5\n* {{Peru}}: 6\n* {{x-1}}: 7", "USA\nNorway – 5\nPeru: 6"),
        ("* a\n[[File:A.jpg]]\n* {{reflist}}\n* {{cvt|5|km}}", "a\n5 km"),
        ("In 1911 {{unknown|{{unknown|a|b}}}} came. Then.", "Then."),
        ("{{Infobox|a=b}}\n{{unknown|a}}\nText.", "Text."),
        ("f() and ( ) and ({{cn}}).", "f() and ( ) and."),
        ("日本は {{unknown|a|b}} 年。海。", "海。"),
    ],
)
def test_a_hole_costs_its_aside_or_its_sentence(wikitext: str, text: str) -> None:
    assert to_text(wikitext).strip() == text


def test_marks_in_the_page_itself_are_removed() -> None:
    page = "a\ufdd6 b\ufdd1c\ufdd3 \ufdd4\ufdd0d."
    assert to_text(page) == "a bc d."
