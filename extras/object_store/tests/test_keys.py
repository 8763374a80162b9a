import json
import sys
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest

from core.corpus.partition import Partition
from core.month import Month
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from tests.forks import run_process
from tests.object_store import KEYS, object_store
from tests.servers import ROOT, PrefectServer

KEY, SECRET = KEYS.values()
_SCRIPT = """
import sys
from prefect.blocks.system import Secret
Secret(value=sys.argv[1]).save("tidemark-storage", overwrite=True)
from flows.work import work
work(models=["control:zstd"], sources=["news"], first="2024-01", last="2024-01")
from tasks.prefect.given import worker_settings
print(repr(worker_settings()), worker_settings().model_dump_json())
from core.storage.store import Store
from core.errors import StorageError
try:
    Store("s3://nowhere/root").exists("a")
except StorageError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_worker_s_keys_come_from_the_block(prefect_server: PrefectServer, tmp_path: Path) -> None:
    with object_store() as port:
        url = f"http://127.0.0.1:{port}"
        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
        client.create_bucket(Bucket="bucket")
        options: dict[str, Any] = {"key": KEY, "secret": SECRET, "endpoint_url": url}
        store = Store("s3://bucket/root", **options)
        (tmp_path / "texts.json").write_text(json.dumps(["sand and tide, " * 20] * 2))
        partition = Partition("news", Month("2024-01"))
        import_texts(tmp_path / "texts.json", partition, store, ImportOptions())
        environment = {
            **prefect_server.environment,
            "TIDEMARK_HOME": "s3://bucket/root",
            "TIDEMARK_WORK_DIR": str(tmp_path / "work"),
            "AWS_EC2_METADATA_DISABLED": "true",
            "PREFECT_LOGGING_LEVEL": "DEBUG",
        }
        command = [sys.executable, "-c", _SCRIPT, json.dumps(options)]
        done = run_process(*command, env=environment, cwd=ROOT)
        assert done.returncode == 0, done.stderr[-3000:]
        assert "there is no bucket 'nowhere'" in done.stdout
        assert len(store.list("losses/*/*/*/*.parquet")) == 1
        known = [done.stdout, done.stderr]
        for kind in ("flow_runs", "task_runs", "logs"):
            known.append(json.dumps(prefect_server.ask("POST", f"{kind}/filter", {})))
        known += [store.read_bytes(path).decode("latin-1") for path in store.list("*/*/*/*/*")]
        files = (file for file in (tmp_path / "work").rglob("*") if file.is_file())
        known += [file.read_bytes().decode("latin-1") for file in files]
        assert not [text[:200] for text in known if SECRET in text]
