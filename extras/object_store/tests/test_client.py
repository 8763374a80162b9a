import datetime as dt
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from core.errors import StorageError
from core.storage.store import Store
from extras.object_store.client import has_keys, parse_options, use_options, used_options
from tests.loopback import PATIENCE_S
from tests.object_store import KEYS, Fault, Proxy, Request, object_store, proxy

ROOT = Path(__file__).resolve().parents[3]
LARGE = 40 * 2**20  # three parts
SECRET = KEYS["AWS_SECRET_ACCESS_KEY"]


@pytest.fixture(scope="module")
def server() -> Iterator[Proxy]:
    with object_store() as port, proxy(port) as between:
        client_of(between).create_bucket(Bucket="bucket")
        yield between


def client_of(server: Proxy) -> Any:
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": SECRET}
    return boto3.client("s3", endpoint_url=server.url, region_name="us-east-1", **keys)


@pytest.fixture
def store(server: Proxy, tmp_path: Path) -> Iterator[Store]:
    server.fault = None
    server.seen.clear()
    yield Store(f"s3://bucket/{tmp_path.name}", tmp_path, **options_of(server))
    server.fault = None


def options_of(server: Proxy) -> dict[str, Any]:
    return {"key": "tidemark-test", "secret": SECRET, "endpoint_url": server.url}


def first(times: int, fault: Fault) -> Fault:
    left = [times]

    def fail(request: Request, handler: Any) -> bool:
        left[0] -= 1
        return left[0] >= 0 and fault(request, handler)

    return fail


def refuse(status: int, code: str) -> Fault:
    def fault(request: Request, handler: Any) -> bool:
        handler.refuse(status, "" if request.method == "HEAD" else code)
        return True

    return fault


def reset(_: Request, handler: Any) -> bool:
    handler.reset()
    return True


def lose_answer(request: Request, handler: Any) -> bool:
    handler.forward(request)
    handler.reset()
    return True


def cut(request: Request, handler: Any) -> bool:
    status, headers, body = handler.forward(request)
    handler.answer(status, headers, body, cut_to=len(body) // 2)
    return True


@pytest.mark.parametrize(
    "fault", [
        pytest.param(refuse(500, "InternalError"), marks=pytest.mark.slow),
        pytest.param(refuse(503, "SlowDown"), marks=pytest.mark.slow),
        reset, lose_answer, cut,
    ],
    ids=["500", "503", "reset", "lost", "cut"],
)  # fmt: skip
def test_what_fails_at_first_is_done_all_the_same(
    store: Store, server: Proxy, fault: Fault
) -> None:
    work: list[tuple[Callable[[], object], object]] = [
        (lambda: store.write_bytes("a/b", b"hello" * 50_000) and None, None),
        (lambda: store.read_bytes("a/b"), b"hello" * 50_000),
        (lambda: store.open("a/b").read(), b"hello" * 50_000),
        (lambda: store.list("*/b"), ["a/b"]),
        (lambda: store.exists("a/c"), False),
        (lambda: store.create_bytes("a/d", b"mine"), True),
        (lambda: store.delete("a/b"), None),
    ]
    for call, expected in work:
        server.fault = first(2, fault)
        assert call() == expected
    server.fault = None
    assert store.list("a/*") == ["a/d"]


def test_who_was_first_is_told_from_a_lost_answer(store: Store, server: Proxy) -> None:
    assert store.create_bytes("theirs", b"same")
    assert not store.create_bytes("theirs", b"same")
    server.fault = first(1, lose_answer)
    assert not store.create_bytes("theirs", b"same")
    server.fault = first(1, lose_answer)
    assert store.create_bytes("ours", b"same")


def test_what_fails_for_good_is_given_up(
    store: Store, server: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("extras.object_store.client.PATIENCE_S", 2.0)
    store.write_bytes("a", b"old")
    file = store.open("a")
    server.fault = refuse(503, "SlowDown")
    for call in (lambda: store.write_bytes("a", b"new"), file.read):
        server.seen.clear()
        with pytest.raises(StorageError, match="bucket 'bucket' keeps failing") as caught:
            call()
        # Five pauses take more than PATIENCE_S, and each try makes four requests.
        assert len(server.seen) <= 5 * 4
        assert SECRET not in str(caught.value)
    server.fault = None
    assert store.read_bytes("a") == b"old"


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (403, "InvalidAccessKeyId", "keys are not accepted for bucket 'bucket'.*AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", "keys are not accepted for bucket 'bucket'"),
        (400, "ExpiredToken", "keys for bucket 'bucket' have expired: get new ones"),
        (403, "AccessDenied", "may not do this in bucket 'bucket'"),
        (404, "NoSuchBucket", "there is no bucket 'bucket'.*TIDEMARK_HOME"),
    ],
)
def test_a_refusal_says_at_once_what_to_do(
    store: Store, server: Proxy, status: int, code: str, says: str
) -> None:
    server.fault = refuse(status, code)
    calls: list[Callable[[], object]] = [
        lambda: store.write_bytes("a", b""),
        lambda: store.create_bytes("a", b""),
        lambda: store.read_bytes("a"),
        lambda: store.exists("a"),
        lambda: store.list("*/a"),
        lambda: store.open("a"),
    ]
    for call in calls:
        with pytest.raises(StorageError, match=says) as caught:
            call()
        assert SECRET not in str(caught.value)
    assert len(server.seen) <= 3 * len(calls)


def test_a_missing_bucket_is_no_empty_one(server: Proxy) -> None:
    server.fault = None
    store = Store("s3://no-such-bucket/root", **options_of(server))
    for call in (lambda: store.exists("a"), lambda: store.list("*/a"), lambda: store.list("a*")):
        with pytest.raises(StorageError, match="there is no bucket 'no-such-bucket'"):
            call()


def test_keys_are_needed(server: Proxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    server.fault = None
    assert not has_keys("s3")
    store = Store("s3://bucket/root", endpoint_url=server.url)
    with pytest.raises(StorageError, match="no keys for bucket 'bucket'.*tidemark-storage"):
        store.write_bytes("a", b"")
    monkeypatch.setattr("fsspec.config.conf", {})
    use_options("s3", options_of(server))
    assert has_keys("s3")
    assert used_options("s3")["key"] == "tidemark-test"
    Store("s3://bucket/root").write_bytes("a", b"1")
    monkeypatch.setattr("fsspec.config.conf", {})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    assert has_keys("s3")


def test_options_are_a_json_object() -> None:
    assert parse_options('{"key": "k"}', "here") == {"key": "k"}
    assert parse_options({"key": "k"}, "here") == {"key": "k"}
    for given in (f"key={SECRET}", f'["{SECRET}"]', None):
        with pytest.raises(StorageError, match="here is no JSON object") as caught:
            parse_options(given, "here")
        assert SECRET not in str(caught.value)


def test_a_reader_sees_one_whole_file(store: Store, server: Proxy, tmp_path: Path) -> None:
    versions = [bytes([number]) * (LARGE + number) for number in range(3)]
    store.write_bytes("file", versions[0])

    def write(data: bytes) -> None:
        with Store(store.root, tmp_path, **options_of(server)).writing("file") as staged:
            staged.path.write_bytes(data)

    writers = [threading.Thread(target=write, args=[data]) for data in versions[1:]]
    for writer in writers:
        writer.start()
    seen: list[bytes] = []
    while any(writer.is_alive() for writer in writers) or not seen:
        store.fetch("file", tmp_path / "copy")
        seen.append((tmp_path / "copy").read_bytes())
    store.fetch("file", tmp_path / "copy")
    assert all(data in versions for data in seen)
    assert (tmp_path / "copy").read_bytes() in versions[1:]
    assert sum("uploadId" in request.path for request in server.seen) > 6  # multipart uploads


def young(request: Request, handler: Any) -> bool:
    """Set the start of uploads to now; in moto all started in 2010."""
    status, headers, body = handler.forward(request)
    now = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%S.000Z}".encode()
    body = re.sub(b"(?<=<Initiated>)[^<]*", now, body)
    handler.answer(status, [], body)
    return True


_WRITER = """
import sys
from pathlib import Path
from core.storage.store import Store
store = Store(sys.argv[1], Path(sys.argv[2]), key="k", secret="s", endpoint_url=sys.argv[3])
with store.writing("file") as staged:
    staged.path.write_bytes(bytes(int(sys.argv[4])))
"""


def test_a_writer_killed_half_way_leaves_the_old_file(
    store: Store, server: Proxy, tmp_path: Path
) -> None:
    store.write_bytes("file", b"old")
    is_half_way = threading.Event()
    is_over = threading.Event()

    def hang(request: Request, _: Any) -> bool:
        if "partNumber=2" in request.path:
            is_half_way.set()
            is_over.wait(PATIENCE_S)
            return True
        return False

    server.fault = hang
    arguments = [store.root, str(tmp_path), server.url, str(LARGE)]
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, *arguments], cwd=ROOT)
    try:
        assert is_half_way.wait(PATIENCE_S)
    finally:
        writer.kill()
        writer.wait()
        is_over.set()
    server.fault = None
    assert store.read_bytes("file") == b"old"
    client = client_of(server)
    assert len(client.list_multipart_uploads(Bucket="bucket")["Uploads"]) == 1
    assert len(list((tmp_path / "staging").iterdir())) == 1
    server.fault = young
    store.clear_leftovers("other")
    server.fault = None
    assert len(client.list_multipart_uploads(Bucket="bucket")["Uploads"]) == 1
    store.clear_leftovers("file")
    assert "Uploads" not in client.list_multipart_uploads(Bucket="bucket")
    assert list((tmp_path / "staging").iterdir()) == []


def test_a_deep_pattern_is_one_listing(store: Store, server: Proxy) -> None:
    months = [f"corpus/source=a/month={month}" for month in range(1, 5)]
    for month in months:
        for name in ("manifest.json", "part-0.parquet"):
            store.write_bytes(f"{month}/{name}", b"")
    store.write_bytes(f"{months[0]}/deeper/manifest.json", b"")
    server.seen.clear()
    assert len(store.list("corpus/source=*/month=*/manifest.json")) == 4
    assert store.list("corpus/source=*/month=*") == months
    assert server.counted() == {"GET": 2}
