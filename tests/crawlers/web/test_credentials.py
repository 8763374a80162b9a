import base64
import html
import json
import logging
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import zstandard
from pydantic import SecretStr

from core.errors import ItemFailed, ItemUnavailable, SourceChanged, TidemarkError, UsageError
from core.settings import Settings, load_settings
from crawlers.web import connections, pacing
from crawlers.web.credentials import Tokens
from crawlers.web.fetcher import Fetcher
from simulator import server
from simulator.server import Fault, Request, Response, Web, serve_sites

TOKEN = 'Zq9/+"&x_W73-s3cr3t'
SPELLINGS = {TOKEN, quote(TOKEN, safe=""), json.dumps(TOKEN)[1:-1], html.escape(TOKEN)}


class EchoSite:
    keys = ("echo",)
    robots: str | None = None

    def __init__(self) -> None:
        self.seen: list[Request] = []

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        said = f"{TOKEN} {request.raw_query} {json.dumps(request.query)} {html.escape(TOKEN)}"
        headers = {"X-Said": quote(TOKEN), "Content-Type": "text/plain"}
        if request.path == "/moved":
            return Response(302, {"Location": f"/page?{request.raw_query}&moved=1"})
        if request.path == "/away":
            return Response(302, {"Location": f"http://away.example/?{request.raw_query}"})
        if request.path == "/packed":
            headers["Content-Encoding"] = TOKEN
        if request.path == "/wide":
            return Response(200, headers, said.encode("utf-16"))
        status = int(request.path[1:]) if request.path[1:].isdigit() else 200
        return Response(status, headers, said.encode())


@pytest.fixture
def site() -> EchoSite:
    return EchoSite()


@pytest.fixture
def web(site: EchoSite) -> Iterator[Web]:
    with serve_sites([site]) as running:
        yield running


@pytest.fixture
def own(settings: Settings, web: Web) -> Settings:
    tokens = {"echo": SecretStr(TOKEN)}
    return settings.model_copy(update={"sites": web.urls, "tokens": tokens})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(connections, "WALL_CLOCK_S", 0.5)
    monkeypatch.setattr(connections, "READ_TIMEOUT_S", 0.3)


def make(own: Settings, web: Web) -> Fetcher:
    return Fetcher(own, web.urls, 0.0)


def ask(fetcher: Fetcher, path: str) -> str:
    token = fetcher.token("echo")
    assert token
    headers = {"Authorization": f"Bearer {token.get_secret_value()}"}
    try:
        page = fetcher.get("echo", path, {"a": 1}, headers=headers, secret_params={"key": token})
    except TidemarkError as error:
        return "".join(f"{each!r} {each} {each.args}" for each in chain(error))
    return f"{page!r} {page.body.decode(errors='replace')} {page.body.decode('utf-16', 'replace')}"


def chain(error: BaseException | None) -> Iterator[BaseException]:
    if error is not None:
        yield error
        yield from chain(error.__cause__)
        yield from chain(error.__context__)


def require_hidden(own: Settings, caplog: pytest.LogCaptureFixture, *texts: str) -> None:
    for path in own.scratch.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".zst":
            data = zstandard.decompress(data)
        texts = (*texts, str(path), data.decode(errors="replace"), data.decode("utf-16", "replace"))
    texts = (*texts, caplog.text, *(f"{r.msg} {r.args} {r.exc_text}" for r in caplog.records))
    for spelling in SPELLINGS:
        for text in texts:
            assert spelling.lower() not in text.lower()


@pytest.mark.parametrize("path", ["/page", "/moved", "/away", "/packed", "/wide"])
def test_no_answer_shows_a_token(
    own: Settings, web: Web, site: EchoSite, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    fetcher = make(own, web)
    text = ask(fetcher, path)
    assert site.seen[0].query["key"] == [TOKEN]
    assert site.seen[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert own.scratch.exists()
    require_hidden(own, caplog, text, str(fetcher.stats), repr(own), own.model_dump_json())


@pytest.mark.parametrize(
    "fault",
    [201, 400, 401, 403, 404, 410, 422, 429, 451, 500, 501, 503, "truncate", "disconnect", "drip",
     "redirect_loop", "redirect_off_host", "empty", "gzip_bomb", "wrong_charset"],
)  # fmt: skip
def test_no_failure_shows_a_token(
    own: Settings, web: Web, caplog: pytest.LogCaptureFixture, fault: int | server.FaultKind
) -> None:
    if not isinstance(fault, int):
        web.faults.append(Fault(fault, "echo", "/page", times=99))
    text = ask(make(own, web), f"/{fault}" if isinstance(fault, int) else "/page")
    assert not isinstance(fault, int) or f"answered {fault}" in text
    require_hidden(own, caplog, text)


def test_a_site_that_is_down_shows_no_token(
    own: Settings, web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    """The library's errors quote the address that was asked for."""
    fetcher = make(own, web)
    fetcher.get("echo", "/page")
    down = own.model_copy(update={"sites": {"echo": "http://127.0.0.1:9"}})
    gone = Fetcher(down, web.urls, 0.0)
    gone._exchange._robots.obey = lambda url: 0.0  # type: ignore[method-assign] # the page itself fails
    text = ask(gone, "/page")
    assert "failed 5 times" in text
    require_hidden(own, caplog, text)


def test_what_a_crawler_says_of_a_page_shows_no_token(own: Settings, web: Web) -> None:
    page = make(own, web).get("echo", "/page")
    with pytest.raises(SourceChanged, match=r"expected JSON, got '\[token\]") as caught:
        page.json()
    assert TOKEN not in str(caught.value)


def test_with_and_without_a_token_it_is_the_same_page(
    own: Settings, web: Web, site: EchoSite
) -> None:
    fetcher = make(own, web)
    page = fetcher.get("echo", "/page", {"a": 1}, secret_params={"key": SecretStr(TOKEN)})
    assert page.url == f"{web.urls['echo']}/page?a=1"
    assert fetcher.get("echo", "/page", {"a": 1}) == page
    assert len(site.seen) == 1


def test_tokens_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_TOKENS__GITHUB", TOKEN)
    settings = load_settings()
    assert settings.tokens == {"github": SecretStr(TOKEN)}
    assert TOKEN not in f"{settings!r} {settings} {settings.model_dump_json()}"
    monkeypatch.delenv("TIDEMARK_TOKENS__GITHUB")
    monkeypatch.setenv("TIDEMARK_TOKENS", f'["{TOKEN}"]')
    with pytest.raises(UsageError, match="(?i)tokens") as caught:
        load_settings()
    assert all("s3cr3t" not in f"{each} {each.args}" for each in chain(caught.value))


@pytest.mark.parametrize("value", ["short", "with space in it", "line\nbreak-in-it", "naïve-token"])
def test_what_is_no_token_is_refused_unseen(own: Settings, web: Web, value: str) -> None:
    bad = own.model_copy(update={"tokens": {"echo": SecretStr(value)}})
    with pytest.raises(UsageError, match="TIDEMARK_TOKENS__ECHO") as caught:
        Fetcher(bad, web.urls, 0.0)
    assert value not in str(caught.value)
    with pytest.raises(UsageError, match="the parameter key of echo") as caught:
        make(own, web).get("echo", "/page", secret_params={"key": SecretStr(value)})
    assert value not in str(caught.value)


def test_what_holds_no_token_stays_as_it_is() -> None:
    data = bytes(range(256)) * 100 + base64.b64encode(bytes(range(256)))
    tokens = Tokens({"a": SecretStr("k3y-of-site")})
    assert tokens.hide_in(data) == data
    assert tokens.hide_in(b"x k3y-of-site y") == b"x [token] y"
    error = ItemFailed("network", "nothing to hide")
    assert tokens.hidden(error) is None


def test_an_error_keeps_its_reason() -> None:
    tokens = Tokens({"a": SecretStr(TOKEN)})
    for kind in (ItemFailed, ItemUnavailable):
        error = kind("timeout", f"asked for {TOKEN}")
        hidden = tokens.hidden(error)
        assert isinstance(hidden, kind)
        assert (hidden.reason, str(hidden)) == ("timeout", "asked for [token]")
