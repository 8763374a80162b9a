from extras.arxiv.tests.papers import text_of


def test_numbers_keep_their_units() -> None:
    for markup, expected in (
        (r"\SI{10}{\kilo\meter\per\second\squared}", "10 km/s²"), (r"\SI{300}{K}", "300 K"),
        (r"\qty{3}{kg.m^2.s^{-1}}", "3 kg m² s⁻¹"), (r"\si{\micro\metre}", "μm"),
        (r"\unit{\square\metre}", "m²"), (r"\unit[3]{m}", "3 m"), (r"\num{1500}", "1500"),
        (r"\num{2.5e-3}", "2.5 × 10⁻³"), (r"\num{1.2 +- 0.3}", "1.2 ± 0.3"),
        (r"\SIrange{1}{5}{\percent}", "1 % to 5 %"), (r"\numrange{1}{9}", "1 to 9"),
        (r"\SIlist{1;2;3}{m}", "1 m, 2 m and 3 m"), (r"\numlist{1;2}", "1 and 2"),
        (r"\ang{30}", "30°"), (r"\ang{1;2;3}", "1°2′3″"), (r"\SI[mode=text]{5}{\celsius}", "5 °C"),
        (r"\SI{90}{\degree}", "90°"), (r"\SI{4}{\metre\tothe{3}}", "4 m³"),
    ):  # fmt: skip
        assert text_of(f"a {markup} b") == f"a {expected} b", markup
    assert text_of(r"\SI{4}{\flop}", r"\DeclareSIUnit\flop{flop}") == "4 flop"
