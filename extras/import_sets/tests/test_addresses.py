"""Files by address: bounded, pinned, from public hosts or those that settings name."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import s3fs

from core.errors import (
    AccessRefused,
    ItemFailed,
    ItemUnavailable,
    SourceChanged,
    TidemarkError,
    UsageError,
)
from core.settings import Settings
from crawlers.imports.addresses import brought, is_address
from simulator.server import Request, Response
from tests.loopback import serving
from tests.object_store import KEYS, object_store
from tests.tiers import needs_extra

BODY = b'{"text": "sand and tide"}\n' * 1000
COMMIT = "0123456789abcdef0123456789abcdef01234567"
Bring = Callable[..., tuple[bytes, dict[str, object]]]


class Files:
    """Answers by path; unknown paths have no file."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.answers: dict[str, Response | list[Response]] = {}

    def respond(self, request: Request) -> Response:
        self.seen.append(request)
        answer = self.answers.get(request.path, Response(404))
        return answer.pop(0) if isinstance(answer, list) else answer


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def site(files: Files) -> Iterator[str]:
    with serving(files.respond) as url:
        yield url


@pytest.fixture
def named(settings: Settings, site: str) -> Settings:
    """Settings that name the site, as tests of crawlers do; it is also the hub."""
    return settings.model_copy(update={"sites": {"mine": site, "huggingface": site}})


@pytest.fixture
def bring(named: Settings) -> Bring:
    def run(address: str, **options: Any) -> tuple[bytes, dict[str, object]]:
        with brought([address], named, **options) as found:
            [path] = found.paths
            [origin] = found.origins
            body = path.read_bytes()
        assert not path.exists()
        assert not list(named.scratch.glob("*address*"))  # nothing is left behind
        return body, {"name": path.name, **origin.describe()}

    return run


def test_a_file_has_its_digest_tag_and_name(bring: Bring, files: Files, site: str) -> None:
    files.answers["/sets/May%202026.jsonl"] = Response(200, {"ETag": '"v1"'}, BODY)
    body, origin = bring(f"{site}/sets/May%202026.jsonl?signature=secret")
    assert body == BODY
    assert origin == {
        "name": "May_2026.jsonl",
        "address": f"{site}/sets/May%202026.jsonl",  # the query may hold a key
        "sha256": hashlib.sha256(BODY).hexdigest(),
        "num_bytes": len(BODY),
        "etag": '"v1"',
    }
    assert files.seen[0].raw_query == "signature=secret"
    assert files.seen[0].headers["user-agent"].startswith("tidemark/")


def test_a_path_is_left_as_it_is(named: Settings, tmp_path: Path) -> None:
    with brought([str(tmp_path), "a/b.jsonl"], named) as found:
        assert found.paths == [tmp_path, Path("a/b.jsonl")]
        assert found.origins == []
    assert [is_address(each) for each in ("S3://a/b", "hf://x", "ftp://a", "s3:/a", "a")] == [
        True, True, True, False, False,
    ]  # fmt: skip


def test_the_hub_s_commit_is_recorded(bring: Bring, files: Files, site: str) -> None:
    """The hub redirects to a store; the commit is that of the hub, whatever a store says."""
    moved = Response(302, {"Location": "/store/1", "X-Repo-Commit": COMMIT})
    files.answers["/datasets/Owner/set-2026.07/resolve/refs%2Fpr%2F1/a/b%20c.parquet"] = moved
    files.answers["/store/1"] = Response(200, {"ETag": "tag"}, BODY)
    address = "hf://datasets/Owner/set-2026.07@refs%2Fpr%2F1/a/b c.parquet"
    body, origin = bring(address)
    assert body == BODY
    assert (origin["revision"], origin["etag"]) == (COMMIT, "tag")
    assert (origin["address"], origin["name"]) == (address, "b_c.parquet")
    files.answers["/datasets/o/n/resolve/main/x.jsonl"] = Response(
        200, {"X-Repo-Commit": COMMIT}, BODY
    )
    assert bring("hf://datasets/o/n/x.jsonl")[1]["revision"] == COMMIT


@pytest.mark.parametrize(
    ("address", "answer", "error", "says"),
    [
        ("hf://datasets/o/n@main/x", {}, SourceChanged, "named no commit"),
        ("hf://datasets/o/n@main/x", {"X-Repo-Commit": "main"}, SourceChanged, "named no commit"),
        (f"hf://datasets/o/n@{'f' * 40}/x", {"X-Repo-Commit": COMMIT}, SourceChanged, COMMIT),
        ("hf://o/n/x", {}, UsageError, "expected hf://datasets/OWNER"),
        ("hf://datasets/o/n", {}, UsageError, "expected hf://datasets/OWNER"),
        ("hf://datasets/../n/x?y", {}, UsageError, "expected hf://datasets/OWNER"),
        ("s3://bucket", {}, UsageError, "expected s3://BUCKET/PATH"),
        ("s3://bucket/", {}, UsageError, "expected s3://BUCKET/PATH"),
        ("https://", {}, UsageError, "expected https://HOST/PATH"),
        ("https://user:key@example.org/x", {}, UsageError, r"^'https://example\.org/x' is given"),
        ("https://[::1/x", {}, UsageError, "is no address"),
        ("https://[]/x", {}, UsageError, "is no address"),
        ("https://[example.org]/x", {}, UsageError, "is no address"),
        ("gs://bucket/x", {}, UsageError, "expected https://"),
        ("file:///etc/passwd", {}, UsageError, "expected https://"),
        ("hf://datasets/../n/x", {}, UsageError, "expected hf://datasets/OWNER"),
        ("hf://datasets/o/n/a/%2e%2e/x", {}, UsageError, "expected hf://datasets/OWNER"),
    ],
)
def test_what_is_not_pinned_or_no_address_is_refused(
    address: str, answer: dict[str, str], error: type[Exception], says: str, bring: Bring,
    files: Files,
) -> None:  # fmt: skip
    for revision in ("main", "f" * 40):
        files.answers[f"/datasets/o/n/resolve/{revision}/x"] = Response(200, answer, BODY)
    with pytest.raises(error, match=says):
        bring(address)


@pytest.mark.parametrize("says_length", [True, False])
def test_no_more_than_the_limit_is_read(
    says_length: bool, bring: Bring, files: Files, site: str
) -> None:
    length = {"Content-Length": str(len(BODY))} if says_length else {"Connection": "close"}
    files.answers["/x.jsonl"] = Response(200, length, BODY)
    with pytest.raises(ItemUnavailable, match=r"larger than 999 bytes; --max-download"):
        bring(f"{site}/x.jsonl", max_bytes=999)
    assert bring(f"{site}/x.jsonl", max_bytes=len(BODY))[0] == BODY


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "2130706433", "0x7f.1"],
)
def test_private_hosts_are_not_asked(host: str, settings: Settings) -> None:
    refusals = pytest.raises(AccessRefused, match="not on the public internet; if it is meant")
    with refusals, brought([f"https://{host}/x.jsonl"], settings):
        pass


def test_a_name_that_leads_to_a_private_host_is_not_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, port: int, *_: object, **__: object) -> list[Any]:
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("socket.getaddrinfo", look_up)
    refusals = pytest.raises(AccessRefused, match=r"example\.org leads to 127\.0\.0\.1")
    with refusals, brought(["https://example.org/x.jsonl"], settings):
        pass


def test_http_is_refused_unless_settings_name_the_host(settings: Settings, site: str) -> None:
    refusals = pytest.raises(AccessRefused, match="is not https")
    with refusals, brought([f"{site}/x.jsonl"], settings):
        pass


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("http://127.0.0.1:9/x", AccessRefused), ("https://10.0.0.1/x", AccessRefused),
        ("http://example.org/x", AccessRefused), ("ftp://example.org/x", TidemarkError),
        ("/again", SourceChanged), ("file:///etc/passwd", TidemarkError),
        ("//127.0.0.1:9/x", AccessRefused), ("https://[::ffff:127.0.0.1]/x", AccessRefused),
        ("https://[fd00::1]/x", AccessRefused), ("https://[64:ff9b::a00:1]/x", AccessRefused),
        ("https://127.1/x", AccessRefused), ("https://localhost./x", AccessRefused),
        ("https://user:key@127.0.0.1/x", TidemarkError), ("https://[::1/x", TidemarkError),
        ("https://[]/x", TidemarkError), ("", TidemarkError),
    ],
)  # fmt: skip
def test_redirects_are_checked_again(
    target: str, error: type[Exception], bring: Bring, files: Files, site: str
) -> None:
    for path in ("/x.jsonl", "/again"):
        files.answers[path] = Response(302, {"Location": target})
    with pytest.raises(error):
        bring(f"{site}/x.jsonl")


def test_a_transfer_that_fails_is_tried_again(bring: Bring, files: Files, site: str) -> None:
    files.answers["/x.jsonl"] = [Response(503), Response(200, {}, BODY)]
    assert bring(f"{site}/x.jsonl")[0] == BODY
    files.answers["/x.jsonl"] = [Response(503)] * 3
    with pytest.raises(ItemFailed, match="failed 3 times: .* answered 503"):
        bring(f"{site}/x.jsonl")
    with pytest.raises(ItemUnavailable, match="answered 404"):
        bring(f"{site}/none.jsonl")


def test_two_files_of_one_name_stay_apart(named: Settings, files: Files, site: str) -> None:
    files.answers |= {"/a/x.jsonl": Response(200, {}, b"a"), "/b/x.jsonl": Response(200, {}, b"b")}
    with brought([f"{site}/a/x.jsonl", f"{site}/b/x.jsonl"], named) as found:
        assert [path.read_bytes() for path in found.paths] == [b"a", b"b"]
        assert {path.name for path in found.paths} == {"x.jsonl"}


def test_a_public_host_may_not_lead_to_one_that_settings_name(
    named: Settings, site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings may name a private host, which a stranger's redirect must not reach."""

    class Moved:
        def __init__(self, own: object) -> None:
            assert own == set()

        def send(self, url: str, headers: object) -> requests.Response:
            assert url == "https://example.org/x.jsonl"
            response = requests.Response()
            response.status_code = 302
            response._content_consumed = True  # type: ignore[attr-defined] - it has no body
            return response

        def redirect_of(self, response: requests.Response) -> str:
            return f"{site}/x.jsonl"

    monkeypatch.setattr("extras.import_sets.addresses.Sender", Moved)
    refusals = pytest.raises(AccessRefused, match="is not https")
    with refusals, brought(["https://example.org/x.jsonl"], named):
        pass


@needs_extra("object_store")
@pytest.mark.slow
def test_an_object_of_a_store(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store() as port:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # they have read the environment
        try:
            store = s3fs.S3FileSystem()
            store.mkdir("sets")
            store.pipe("sets/2026/x[1].jsonl", BODY)
            address = "s3://sets/2026/x[1].jsonl"
            with brought([address], settings) as found:
                assert found.paths[0].read_bytes() == BODY
                [origin] = found.origins
            assert (origin.address, origin.num_bytes) == (address, len(BODY))
            assert origin.sha256 == hashlib.sha256(BODY).hexdigest()
            assert origin.etag == hashlib.md5(BODY, usedforsecurity=False).hexdigest()
            too_large = pytest.raises(ItemUnavailable, match="larger than 9 bytes")
            with too_large, brought([address], settings, 9):
                pass
            absent = pytest.raises(UsageError, match="there is no object s3://sets/none")
            with absent, brought(["s3://sets/none"], settings):
                pass
        finally:
            s3fs.S3FileSystem.clear_instance_cache()


def test_without_the_extra_an_address_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crawlers.imports.addresses.import_parts", lambda part: ())
    refused = pytest.raises(UsageError, match="the extra import_sets brings, and that is missing")
    with refused, brought(["https://example.org/x.jsonl"], settings):
        pass
