import pytest

from crawlers.text.wikitext import to_text


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{{convert|288|km|mi}}", "288 kilometres"),
        ("{{convert|19000|sqft|m2}}", "19,000 square feet"),
        ("{{convert|19000|sqft|m2|adj=on}}", "19,000-square-foot"),
        ("{{convert|1|mi|km|0}}", "1 mile"),
        ("{{convert|1,234.5|m|sp=us}}", "1,234.5 meters"),
        ("{{convert|-10|C|F|0|abbr=on}}", "−10 °C"),
        ("{{convert|3|to|5|km|mi|abbr=on}}", "3 to 5 km"),
        ("{{convert|2|x|4|x|6|in}}", "2 × 4 × 6 inches"),
        ("{{convert|5|ft|11|in|cm}}", "5 ft 11 in"),
        ("{{convert|1+1/2|in}}", "1 1/2 inches"),
        ("{{convert|30|/km2}}", "30/km2"),
        ("{{convert|7|furlong}}", "7 furlong"),
        ("{{cvt|2|sqmi}}", "2 sq mi"),
        ("{{ft to m|100}} or {{mi to km|20}}", "100 feet or 20 miles"),
        ("{{height|ft=6|in=2}}", "6 ft 2 in"),
        ("{{val|1.5|0.1|e=3|u=m}}", "1.5 ± 0.1 × 10^3 m"),
        ("{{frac|1|2}}, {{frac|3|1|2}}, {{frac|4}}", "1⁄2, 3 1⁄2, 1⁄4"),
        ("{{formatnum:1234567}}", "1,234,567"),
        ("{{#expr:2019+1}}", "2020"),
        ("{{US$|100}} and {{₹|5}}, {{INRConvert|5|c}}", "US$100 and ₹5, ₹5 crore"),
        ("B{{music|flat}} and {{tmath|x^2}}{{snd}}{{gaps|1|234}}", "B♭ and $x^2$ – 1 234"),
        ("Ida {{post-nominals|country=GBR|CBE|FRS}}", "Ida CBE, FRS"),
        ("[{{IPA|a}}] and {{IPA|b}}", "[a] and [b]"),
        ("{{unichar|20B4|SIGN|html=}} of {{CO2}}, {{currency|5|USD}}", "U+20B4 SIGN of CO2, 5 USD"),
        ("{{nombre|5|ans}} le {{date|3|mai|1990}}", "5 ans le 3 mai 1990"),
        ("{{As of|2011|3}}", "As of March 2011"),
        ("{{as of|2011|3|9|lc=y|df=US}}", "as of March 9, 2011"),
        ("{{As of|2010|alt=In 2010}}", "In 2010"),
        ("{{circa}} 965, {{c.|965|1040}}", "c. 965, c. 965–1040"),
        ("{{fl.|1200}}, {{reign|5|9}}", "fl. 1200, r. 5–9"),
        ("{{start date|1973|3|12|df=y}}", "12 March 1973"),
        ("{{birth date and age|1973|3|12}}", "March 12, 1973"),
        ("{{death date|1973|March}}, {{film date|1973|99}}", "1973, 1973"),
        ("{{OldStyleDate|2 May|1729|21 April}}", "2 May 1729 [O.S. 21 April]"),
        ("{{lang|fr|''mer''}} {{lang|code=fr|text=la}}", "mer la"),
        ("{{lang-ru|слово}}", "Russian: слово"),
        ("{{langx|el|λέξη|lexi|word}}", "Greek: λέξη, lexi, lit. 'word'"),
        ("{{lang-zh|t=詞|p=cí}}", "traditional Chinese: 詞; pinyin: cí"),
        ("{{korean|hangul=말|rr=mal}}", "Korean: 말; RR: mal"),
        ("{{transl|ar|ALA|kalima}}", "kalima"),
        ("{{nihongo|Tea|茶|cha}}, {{nihongo|Tea|茶}}", "Tea (茶, cha), Tea (茶)"),
        ("{{IPA|sv|ˈɔrːɛl}} {{IPA-fr|mo}} {{IPA|/x/}}", "[ˈɔrːɛl] [mo] /x/"),
        ("{{IPAc-en|lang|ˈ|t|ə|_|r}} {{respell|TUH|ree}}", "/ˈtə r/ TUH-ree"),
        ("{{nowrap|a {{small|b}}}} {{nobr|1=x=y}}", "a b x=y"),
        ("{{abbr|UK|United Kingdom}} {{font color|red|c}} H{{sub|2}}O", "UK c H2O"),
        ("{{chem|H|2|O}} {{chem2|CO2}} {{eqm}}", "H2O CO2 ⇌"),
        ("{{ill|Ada|de|Eda}} {{ill|Ada|de|lt=Ida}}", "Ada Ida"),
        ("{{wikt|go}} {{wikt-lang|en|go|went}}", "go went"),
        ("{{translation note|word|from Russian}}", "word"),
        ('{{translated quote|ru|"Да"|"Yes"}}', '"Yes"'),
        ("Ada{{'s}} a{{snd}}b{{nbsp}}c{{mdash}}d {{angbr|e}}", "Ada's a – b c—d ⟨e⟩"),
        ("{{sic}} {{sic|ho|us}} {{sic|hide=y|hous}}", "[sic] hous [sic] hous"),
        ("{{HMS|Victory}} {{ship|HMS|Victory|R1}} {{sclass|A|carrier}}",
         "HMS Victory HMS Victory A-class carrier"),
        ("{{flag|Norway}} {{sortname|Ida|Falk}} {{hlist|a|b}}", "Norway Ida Falk a, b"),
        ("{{coord|41.89|-87.62}}", "41.89°N 87.62°W"),
        ("{{coord|45|32|22|N|89|45|W|region:US}}", "45°32′22″N 89°45′W"),
        ("{{harvtxt|Smith|Ray|2001|p=3}}", "Smith & Ray (2001)"),
    ],
)  # fmt: skip
def test_a_template_shows_its_arguments_in_a_sentence(template: str, shown: str) -> None:
    assert to_text(f"It was {template} then.") == f"It was {shown} then."


@pytest.mark.parametrize("name", ["quote", "blockquote", "cquote", "Zitat"])
def test_a_quotation_stands_on_a_line_of_its_own(name: str) -> None:
    assert to_text(f"He said:{{{{{name}|1=I = a\nline|author=X}}}} Then.") == (
        "He said:\nI = a\nline\nThen."
    )


@pytest.mark.parametrize(
    "template",
    [
        "{{cn|date=May 2010}}", "{{sfn|A|2001}}", "{{efn|A note.}}", "{{Citation needed}}",
        "{{r|a}}", "{{#tag:ref|a}}", "{{coord|1|2|display=title}}",
        "{{new tag|reason=x|date=May 2010}}",
        "{{flagicon|USA}}", "{{cite web|title=A}}", "{{by whom}}", "{{anchor|a}}", "{{lang|fr|}}",
    ],
)  # fmt: skip
def test_what_a_template_does_not_show_costs_no_word(template: str) -> None:
    for before, after in (("One{}, two.", "One, two."), ("One {} two.", "One two.")):
        assert to_text(before.format(template)) == after
    assert to_text(f"One ({template}; two) and ({template}).") == "One (two) and."


@pytest.mark.parametrize(
    "template",
    ["{{CURRENTYEAR}}", "{{Inflation|US|5|1950}}", "{{age|1950|1|1}}", "{{#invoke:x|y}}"],
)
def test_a_result_that_the_wiki_computes_is_never_guessed(template: str) -> None:
    assert to_text(f"One. It was {template} then. Two.") == "One. Two."
