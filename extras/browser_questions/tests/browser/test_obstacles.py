import re
from collections.abc import Callable, Iterator

import pytest

from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from extras.browser_questions.browser import obstacles
from extras.browser_questions.browser.fetching import Browser, Limits
from extras.browser_questions.browser.obstacles import Scroll
from extras.browser_questions.browser.session import Session
from extras.browser_questions.tests.browser.conftest import PAGES, Pages, chromiums, leftovers
from simulator.server import Response, Web
from tests.crawlers.conftest import refused

Read = Callable[..., bytes]
LIMITS = Limits(page_s=20.0)
TEXT = "<article id=text style='height:400px'>The text of the page.</article>"
WALL = """
<div style="position:fixed;inset:0;background:#000a" id=veil></div>
<div style="position:fixed;inset:20% 20%;background:#fff" id=wall>Privacy: {buttons}</div>
<script>
  const refuse = () => {{ veil.remove(); wall.remove(); document.body.dataset.chose = 'no'; }};
  const agree = () => {{ veil.remove(); wall.remove(); document.body.dataset.chose = 'yes'; }};
</script>
"""
ACCEPT = "<button onclick='agree()'>Accept all</button>"


@pytest.fixture
def read(web: Web, fetcher: Fetcher, settings: Settings) -> Iterator[Read]:
    with Browser(settings, fetcher, LIMITS) as browser:
        session = Session(browser)
        yield (
            lambda path, wanted="#text", **options: (
                session.read(f"{web.urls[PAGES]}{path}", wanted, **options).body
            )
        )


def wall(*labels: str) -> str:
    buttons = [f"<button onclick='refuse()'>{label}</button>" for label in labels]
    return WALL.format(buttons=" ".join([ACCEPT, *buttons]))


REFUSALS = (
    "Reject all", "reject", "Decline optional cookies", "Only necessary cookies",
    "Use necessary cookies only", "Accept only essential cookies", "Continue without accepting",
    "Alle ablehnen", "Nur notwendige Cookies", "Tout refuser",
)  # fmt: skip
OTHERS = (
    "Accept all", "Accept", "Allow all cookies", "OK", "Agree", "Reject or pay", "Continue",
    "Accept necessary and optional cookies", "Manage options", "Refuse to reject", "",
)  # fmt: skip


def test_only_labels_that_refuse_are_known() -> None:
    known = re.compile(obstacles._REFUSALS, re.IGNORECASE)
    assert [label for label in REFUSALS if not known.fullmatch(label)] == []
    assert [label for label in OTHERS if known.fullmatch(label)] == []


def test_a_wall_is_closed_by_the_button_that_refuses(
    pages: Pages, fetcher: Fetcher, read: Read
) -> None:
    pages.add("/page", TEXT + wall(" Only   necessary cookies "))
    body = read("/page")
    assert b'data-chose="no"' in body and b"The text of the page" in body
    assert fetcher.stats["walls_closed"] == 1


def test_a_wall_that_can_only_be_accepted_refuses_the_page(
    pages: Pages, fetcher: Fetcher, read: Read
) -> None:
    pages.add("/page", TEXT + wall("Manage options", "Reject or pay"))
    pages.add("/next", TEXT)
    with refused("permission", "/page: a consent wall covers #text"):
        read("/page")
    assert b"The text" in read("/next")
    assert fetcher.stats["walls_closed"] == 0


def test_text_that_comes_after_the_refusal_is_read(
    pages: Pages, fetcher: Fetcher, read: Read
) -> None:
    later = "<script>wall.addEventListener('click', () => document.body.append(box()))</script>"
    box = f'<script>const box = () => document.createRange().createContextualFragment("{TEXT}")'
    pages.add("/page", f"<p>Wait.</p>{wall('Reject')}{box}</script>{later}")
    assert b"The text" in read("/page")
    assert fetcher.stats["walls_closed"] == 1


def test_a_banner_that_covers_no_text_is_left_alone(
    pages: Pages, fetcher: Fetcher, read: Read
) -> None:
    pages.add("/page", f"{TEXT}<div style='position:fixed;bottom:0;height:40px'>{ACCEPT}</div>")
    assert b"Accept all" in read("/page")
    assert fetcher.stats["walls_closed"] == 0


FEED = """
<div id=feed></div><script>
  let page = 0, isBusy = false;
  const more = async () => {
    if (isBusy || innerHeight + scrollY < document.documentElement.scrollHeight - 50) return;
    isBusy = true;
    const html = await (await fetch('/more' + page++)).text();
    feed.insertAdjacentHTML('beforeend', html);
    isBusy = false;
  };
  addEventListener('scroll', more); more();
</script>
"""


def test_a_list_without_end_is_scrolled_to_its_bound(pages: Pages, read: Read) -> None:
    pages.add("/feed", FEED)
    for number in range(40):
        items = "".join(f"<p class=item style='height:300px'>{number}</p>" for _ in range(5))
        pages.add(f"/more{number}", items)
    body = read("/feed", ".item", scroll=Scroll(".item", max_items=20))
    assert 20 <= body.count(b'class="item"') <= 30
    body = read("/feed", ".item", scroll=Scroll(".item", max_items=99, max_steps=2))
    assert body.count(b'class="item"') <= 20


def test_a_list_is_scrolled_to_its_end(
    pages: Pages, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(obstacles, "_QUIET_S", 1.0)
    pages.add("/feed", FEED)
    for number in range(3):
        pages.add(f"/more{number}", f"<p class=item style='height:1200px'>{number}</p>")
    pages.answers["/more3"] = Response(200, {"Content-Type": "text/html"}, b"")
    body = read("/feed", ".item", scroll=Scroll(".item", max_items=99))
    assert re.findall(rb'class="item"[^>]*>(\d)', body) == [b"0", b"1", b"2"]


def test_a_login_is_refused_by_name_and_nothing_is_typed(
    web: Web, pages: Pages, fetcher: Fetcher, settings: Settings
) -> None:
    pages.add(
        "/members",
        "<form action=/login method=post><input name=user id=user><input type=password id=pass>"
        "<button>Log in</button></form><script>addEventListener('input', () => fetch('/typed'))"
        "</script>",
    )
    says = "/members asks for a log-in at .*/members; no user name"
    with Browser(settings, fetcher, LIMITS) as browser, refused("permission", says):
        Session(browser).read(f"{web.urls[PAGES]}/members", "#text")
    assert {path for _, _, path in web.requests} == {"/robots.txt", "/members"}
    assert chromiums() == []
    assert leftovers() == set()
