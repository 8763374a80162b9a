from concurrent.futures import ThreadPoolExecutor

import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from core.month import Month
from crawlers.hygiene import quality
from crawlers.hygiene.quality import rank_languages
from simulator.world import World

TEXTS = {
    "en": "The council met on Tuesday evening and agreed, after a long debate, that the old bridge "
    "should be repaired before the winter rather than replaced in the spring.",
    "de": "Der Rat trat am Dienstagabend zusammen und beschloss nach langer Debatte, die alte "
    "Brücke noch im Herbst zu reparieren, statt im Frühjahr eine neue zu bauen.",
    "fr": "Le conseil s'est réuni mardi soir et a décidé, après un long débat, que la vieille "
    "passerelle serait réparée avant l'hiver plutôt que remplacée au printemps.",
    "es": "El consejo se reunió el martes por la noche y acordó, tras un largo debate, que el "
    "puente viejo se repararía antes del invierno en lugar de sustituirlo en primavera.",
    "pl": "Rada zebrała się we wtorek wieczorem i po długiej debacie postanowiła, że stary most "
    "zostanie naprawiony jeszcze przed zimą, a nie wymieniony dopiero na wiosnę.",
    "ru": "Совет собрался во вторник вечером и после долгих споров решил, что старый мост будет "
    "отремонтирован до зимы, а не заменён новым следующей весной.",
    "zh": "市议会星期二晚上开会，经过长时间的辩论，决定在冬天到来之前修复旧桥，"
    "而不是等到明年春天再建新桥。许多居民对这一决定表示欢迎。",
    "ja": "市議会は火曜日の夜に開かれ、長い議論の末、古い橋を春に架け替えるのではなく、冬になる前に"
    "修理することを決めた。多くの住民がこれを歓迎した。",
}  # fmt: skip


def language_score(text: str, language: str) -> tuple[float, str, float] | None:
    [ranks] = rank_languages([text])
    return quality.language_score(ranks, language)


def wrong_language(text: str, language: str) -> tuple[float | None, str | None]:
    [ranks] = rank_languages([text])
    return quality.wrong_language(ranks, language)


def test_the_probabilities_are_those_of_the_library() -> None:
    odd = ["", "1 2 3", "DER RAT TRAT AM DIENSTAG ZUSAMMEN", "e\u0301t\u00e9 " * 30]
    library = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    texts = [*TEXTS.values(), *odd, *(text[:40] * 9 for text in TEXTS.values())]
    for text, ranks in zip(texts, rank_languages(texts), strict=True):
        expected = dict(library.rank(text.encode()))
        del expected["zxx"]
        assert ranks == pytest.approx(expected, abs=1e-6)
    assert rank_languages([]) == []


@pytest.mark.parametrize("language", TEXTS)
def test_each_language_is_kept_as_its_own_and_dropped_as_another(language: str) -> None:
    text = TEXTS[language]
    score, why = wrong_language(text, language)
    assert score is not None
    assert score > 0.8
    assert why is None
    other = "en" if language != "en" else "de"
    score, why = wrong_language(text, other)
    assert score is not None
    assert score < 0.1
    assert why is not None
    assert why.startswith(f"{other} at 0.")
    assert f"{language} at " in why


def test_the_simulated_world_is_english() -> None:
    """Its names are invented, and its words exist in other languages, too."""
    world = World(3, Month("2024-01"), Month("2024-02"), stories_per_month=20)
    paragraphs = [
        paragraph[:cut]
        for month in world.months
        for story in world.stories(month, "wikipedia_new")
        for paragraph in story.paragraphs
        for cut in (100, 200, None)
    ]
    assert len(paragraphs) > 150
    assert not [text for text in paragraphs if wrong_language(text, "en")[1]]


def test_an_uncertain_guess_that_is_right_drops_nothing() -> None:
    text = (
        "Present: J. Dubois, Karlheinz Schröder and Giulia Rossi, of the council in Wolfenbüttel "
        "and the school of Fontainebleau."
    )
    found = language_score(text, "en")
    assert found is not None
    score, best, _ = found
    assert best == "en"
    assert score < 0.8
    assert wrong_language(text, "en") == (score, None)


def test_nothing_to_go_by_drops_nothing() -> None:
    for text in ("1234567890 " * 20, "…" * 100, "$x$ " * 50):
        assert wrong_language(text, "en")[1] is None
    assert wrong_language(TEXTS["en"], "tlh") == (None, None)  # which the model does not know


def test_regions_and_close_relatives_are_one_language() -> None:
    for language in ("de-at", "DE"):
        assert wrong_language(TEXTS["de"], language)[1] is None
    text = (
        "Kommunestyret møttes tirsdag kveld og vedtok etter en lang debatt at den gamle broen skal "
        "repareres før vinteren i stedet for å bli erstattet til våren."
    )
    for language in ("no", "nb", "nn"):
        assert wrong_language(text, language)[1] is None
    assert wrong_language(TEXTS["zh"], "zh-hans")[1] is None


def test_only_the_first_2_kb_are_read_and_maths_is_passed_over() -> None:
    english, german = TEXTS["en"] + " ", TEXTS["de"] + " "
    assert wrong_language(english * 20 + german * 1000, "en")[1] is None
    maths = r"$\sum_{i=1}^{n} \langle v_i, w_{ij} \rangle \leq \lVert v \rVert_2$ "
    assert language_score((maths * 3 + english) * 9, "en") is not None
    assert wrong_language((maths * 3 + english) * 9, "en")[1] is None


def test_threads_share_the_model() -> None:
    texts = [TEXTS[language] for language in TEXTS] * 20
    alone = [language_score(text, "en") for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: language_score(text, "en"), texts)) == alone
