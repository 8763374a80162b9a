import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from requests.adapters import HTTPAdapter

from core.errors import SourceChanged
from crawlers.web.urls import follow, host_of_url, is_private_address, normalise, origin_of


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://En.Wikipedia.org/w/api.php", "en.wikipedia.org"), ("https://h:443/", "h"),
        ("http://h:80", "h"), ("http://h:443", "h:443"),
        ("http://127.0.0.1:8000/x", "127.0.0.1:8000"), ("http://[::1]:8000/x", "::1:8000"),
        ("http://user@h/", None), ("http://", None), ("ftp://h/", None), ("h/path", None),
        ("http://h:port/", None), ("http://h:99999/", None), ("http://[::1", None),
    ],
)  # fmt: skip
def test_host_of_url(url: str, host: str | None) -> None:
    assert host_of_url(url) == host


def test_private_addresses_are_known_in_all_spellings() -> None:
    """RFC 6761 gives ``localhost`` away; numbers are read as ``inet_aton`` reads them."""
    private = ["localhost", "localhost.", "a.LocalHost", "127.1", "0x7f000001", "017700000001",
               "10.1", "192.168.257", "0", "::ffff:7f00:1", "127.0.0.1."]  # fmt: skip
    public = ["1.1", "16843009", "0x08080808", "example.org", "10.example", "1.2.3.4.5", "a.1.2"]
    assert [host for host in private + public if is_private_address(host)] == private


def test_origins_differ_by_scheme_and_port() -> None:
    urls = ["http://h/a", "https://h/a", "http://h:81/a", "http://i/a"]
    assert len({origin_of(url) for url in urls}) == 4
    assert origin_of("http://h/a?b") == origin_of("http://h/c")


def test_follow() -> None:
    assert follow("http://h/a/b?c", "d") == "http://h/a/d"
    assert follow("http://h/a/b?c", "//i/d") == "http://i/d"
    assert follow("http://h/a", "../../../x") == "http://h/x"
    with pytest.raises(SourceChanged):
        follow("http://h/a", "http://[::1")


pieces = st.lists(
    st.sampled_from(["http:", "https:", "//", "/", "\\", "@", "a.example", "b.example", ":", "81",
                     "?", "#", "%", "%2f", "..", "\t", "é", "☃", "[", "]", "::1", " "])
)  # fmt: skip


@given(pieces)
def test_the_host_that_is_checked_is_the_host_that_is_asked(parts: list[str]) -> None:
    try:
        url = follow("http://start.example/", "".join(parts))
    except SourceChanged:
        return
    if (host := host_of_url(url)) is None:
        return
    assert normalise(url) == url
    request = requests.Request("GET", url).prepare()
    asked, _ = HTTPAdapter().build_connection_pool_key_attributes(request, verify=True)
    name = str(asked["host"]).strip("[]")
    port = asked["port"] or {"http": 80, "https": 443}[str(asked["scheme"])]
    assert host in (name, f"{name}:{port}")
