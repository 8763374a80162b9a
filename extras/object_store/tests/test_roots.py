import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
import s3fs

from core.storage.store import Store
from simulator.server import Web
from tests.object_store import KEYS, object_store
from tests.tiers import needs_extra

Tidemark = Callable[..., Any]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with object_store() as port:
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="tidemark")
        s3fs.S3FileSystem.clear_instance_cache()  # they have read the environment
        yield "s3://tidemark/root"
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
@needs_extra("releases")
@needs_extra("reproduction")
def test_an_object_store_holds_the_same_as_a_disk(
    tidemark: Tidemark, bucket: str, sites: Web, tmp_path: Path, dump: Any, losses_file: Any
) -> None:
    texts = tmp_path / "texts.json"
    foreign = losses_file("foreign")
    texts.write_text(json.dumps([f"{number}: sand and tide, " * 20 for number in range(3)]))
    steps = [
        ("crawl", "--source", "arxiv", "--month", "2024-01"),
        ("import", "texts", texts, "--source", "news", "--month", "2024-01"),
        ("score", "-m", "control:zstd"),
        ("land", "losses", foreign),
        ("check", "--deep"),
        ("report",),
        ("release", "2024-01"),
        ("corpus", "show", "arxiv", "2024-01"),
    ]
    roots = [str(tmp_path / "disk"), bucket]
    shown: dict[str, list[str]] = {root: [] for root in roots}
    for root in roots:
        where = {"home": root, "work_dir": tmp_path / f"work-{len(root)}"}
        for step in steps:
            ran = tidemark(*step, **where)
            assert ran.code == 0, (root, step, ran.err)
        for view in ("monthly_loss", "coverage"):
            rows = tidemark("sql", f"from {view} order by all", "--format", "csv", **where)
            shown[root].append(rows.out)
        tables = dump(root, work_dir=where["work_dir"])
        shown[root].append(json.dumps(tables, default=str, sort_keys=True))
        files = Store(root).list("*/*/*/*")
        shown[root].append("\n".join(f for f in files if f.startswith(("losses", "releases"))))
    assert shown[roots[0]] == shown[roots[1]]
    ran = tidemark("check", "cell", "control:zstd/news/2024-01/default", **where)
    assert ran.code == 0, ran.err
    ran = tidemark("corpus", "forget", "--native-id", "news:0", "--why", "asked", **where)
    assert ran.code == 0, ran.err
    other = {**where, "work_dir": tmp_path / "another-machine"}
    ran = tidemark("land", "losses", foreign, **other)
    assert ran.code == 1
    assert "take-over" in ran.err
    assert tidemark("take-over", **other).code == 0
    assert tidemark("land", "losses", foreign, **other).code == 0
