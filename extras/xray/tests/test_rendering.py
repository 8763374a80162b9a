import datetime as dt
import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from core.corpus.simulated import LICENCE
from core.schemas.tables import TOKEN_LOSSES
from extras.xray.rendering import (
    Side,
    XrayView,
    common_boundaries,
    segments_of,
    sum_segments,
    view_of,
    write_page,
)
from tests.reports.site.conftest import browser as browser  # the fixture

HOSTILE = "</div><script>alert(1)</script> \u202e\x1b\r\n"
TEXT = f"{HOSTILE}é🙂 مرحبا end"
ALL = {
    "document_id": "d", "source": "s<i>", "month": dt.date(2024, 3, 1), "title": "<b>x</b>",
    "url": "javascript:alert(1)", "licence": "LicenseRef-unknown", "attribution": '"a" & <b>',
    "text": TEXT,
}  # fmt: skip


def side(model: str, ends: list[int], nats: list[float], first: int = 0) -> Side:
    return Side(model, np.array([first, *ends[:-1]]), np.array(ends), np.array(nats))


def table(side: Side) -> pa.Table:
    places = side.begins, side.ends, side.nats
    rows = [
        {"model": side.model, "revision": "r", "source": "s", "document_id": "d",
         "protocol": "default", "chunk_index": 0, "token_index": index, "token_id": 0,
         "begin_byte": begin, "end_byte": end, "nll_nats": nats}
        for index, (begin, end, nats) in enumerate(zip(*places, strict=True))
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=TOKEN_LOSSES)


def test_segments_lie_between_boundaries_of_both() -> None:
    one = side("a", [2, 4, 4, 6, 9], [1.0, 2.0, 0.5, 4.0, 8.0])  # the third token has no text
    other = side("b", [4, 5, 6, 9], [1.0, 1.0, 1.0, 1.0])
    boundaries = common_boundaries([one, other])
    assert boundaries.tolist() == [0, 4, 6, 9]
    assert segments_of(one, boundaries).tolist() == [0, 0, 0, 1, 2]
    assert sum_segments(one, boundaries).tolist() == pytest.approx([3.5, 4.0, 8.0])
    assert sum_segments(other, boundaries).tolist() == pytest.approx([1.0, 2.0, 1.0])


def test_bytes_that_one_model_does_not_score_have_no_figure() -> None:
    one = side("a", [0, 3, 6, 9], [0.5, 1.0, 2.0, 4.0])  # a special token in front
    other = side("b", [6, 12], [1.0, 1.0], first=3)
    boundaries = common_boundaries([one, other])
    assert boundaries.tolist() == [3, 6]
    assert segments_of(one, boundaries).tolist() == [-1, -1, 0, -1]
    gap = Side("c", np.array([0, 5]), np.array([3, 9]), np.array([1.0, 1.0]))
    assert np.isnan(sum_segments(gap, np.array([0, 9]))).all()
    assert sum_segments(gap, np.array([4])).tolist() == []


def view(*sides: Side) -> XrayView:
    return view_of(ALL, list(map(table, sides)), [{"Min-20%": -1.0}] * 2)


def by_byte(model: str, nats: float) -> Side:
    size = len(TEXT.encode())
    return side(model, [*range(1, size + 1)], [nats] * size)


def test_a_page_splits_no_character_and_shows_the_whole_text() -> None:
    pieces = view(by_byte("a", 1.0), by_byte("b", 2.0)).pieces
    text = "".join(piece.text for piece in pieces)
    assert text == TEXT.replace("\x1b", "␛").replace("\r", "␍")
    emoji = next(piece for piece in pieces if piece.text == "🙂")
    assert emoji.title.endswith(" · 4.00 · 8.00")
    assert emoji.level == "b3"  # 4 nats are 5.8 bits
    head = view(by_byte("a", 1.0), side("b", [8], [1.0], first=6))
    assert (head.before, len(head.after)) == ("</div>", len(TEXT) - 8)


def test_a_page_escapes_and_requests_nothing() -> None:
    page = write_page(view(by_byte("a<b>", 1.0), by_byte("b", 2.0))).decode()
    assert page.count("<script>") == 1
    assert "&lt;b&gt;x&lt;/b&gt;" in page and "javascript:" not in page
    assert re.findall(r"(?:src|href)=", page) == []
    assert "url(" not in page and "@import" not in page
    [policy] = re.findall(r'Policy" content="([^"]*)"', page)
    assert policy.count("sha256-") == 2
    assert "unsafe" not in policy and "default-src &#39;none&#39;" in policy
    assert "not known as open" in page


def test_the_address_of_a_simulated_document_is_no_link() -> None:
    facts = {**ALL, "url": "https://arxiv.org/abs/2406.00005", "licence": LICENCE}
    tables = [table(by_byte("a", 1.0)), table(by_byte("b", 2.0))]
    page = write_page(view_of(facts, tables, [{"Min-20%": -1.0}] * 2)).decode()
    assert "made up: <code>https://arxiv.org/abs/2406.00005</code>" in page
    assert "href=" not in page


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_works_from_disk_by_keyboard(browser: Browser, tmp_path: Path, scheme: str) -> None:
    size = len(TEXT.encode())
    nats = [math.sin(place) * 4 for place in range(size)]
    path = tmp_path / "page.html"
    path.write_bytes(write_page(view(by_byte("a", 1.0), side("b", [*range(1, size + 1)], nats))))
    window = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    noise: list[str] = []
    window.on("console", lambda message: noise.append(message.text))
    window.on("dialog", lambda dialog: noise.append(dialog.message))
    window.on("request", lambda request: noise.append(request.url))
    window.goto(path.as_uri())
    window.locator("[data-xray]").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End"):
        window.keyboard.press(key)
    last = f"“d”, bytes {size - 1}–{size}: a 1.00 nats, b"
    assert last in str(window.locator("[data-piece]").text_content())
    assert window.locator("[data-current]").text_content() == "d"
    # axe measures contrasts, of the text on each colour, too.
    found = Axe().run(window, options={"preload": False}).response["violations"]
    assert [each["id"] for each in found] == []
    assert noise == [path.as_uri()]
    window.close()


@pytest.mark.long
def test_figures_of_the_models_fit_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    sides = [table(by_byte(name, 1.0)) for name in ("reference-2023-03", "reference-2024-01")]
    path.write_bytes(write_page(view_of(ALL, sides, [{"Min-20%": -1.0}] * 2)))
    window = browser.new_page(viewport={"width": 360, "height": 800})
    window.goto(path.as_uri())
    figures = window.get_by_role("region", name="Figures of the two models")
    assert figures.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    level = figures.locator("td").nth(2)
    assert level.evaluate("e => getComputedStyle(e, '::before').content") == (
        '"level (bits per byte)"'
    )
    window.close()
