"""The commands of docs/backup.md, "Backup and restore", copied from that page."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
import s3fs

from simulator.server import Fault, Web
from tests.forks import run_process
from tests.object_store import KEYS, object_store
from tests.tiers import needs_extra

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```sh\n# (backup|restore) of ([^\n]*)\n(.*?)```", re.DOTALL)
Tidemark = Callable[..., Any]


def commands() -> dict[tuple[str, str], str]:
    text = (ROOT / "docs/backup.md").read_text(encoding="utf-8")
    return {(kind, what): lines for kind, what, lines in BLOCK.findall(text)}


def run_shell(lines: str, environment: dict[str, str]) -> None:
    done = run_process("bash", "-euo", "pipefail", "-c", lines, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """Make a PATH with a ``tidemark`` of this checkout, without the doctor's slow checks."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "tidemark"
    command.write_text(
        f'#!/bin/sh\n[ "$1" = doctor ] && exit 0\ncd {ROOT} && '
        f'exec {sys.executable} -c "from cli.main import main; main()" "$@"\n'
    )
    command.chmod(0o755)
    return f"{folder}:/usr/local/bin:/usr/bin:/bin"


@needs_extra("arxiv")
def test_a_home_comes_back(
    tidemark: Tidemark, home: Path, sites: Web, tmp_path: Path, tools: str, losses_file: Any,
    dump: Any,
) -> None:  # fmt: skip
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([f"{number}: sand and tide, " * 20 for number in range(3)]))
    sites.faults.append(Fault("status", "arxiv", r"/src/\d+\.\d+0003v1", 99, 501))
    assert tidemark("crawl", "--source", "arxiv", "--month", "2024-01").code == 0
    sites.faults.clear()
    assert tidemark("import", "texts", texts, "--source", "news", "--month", "2024-01").code == 0
    assert tidemark("score", "-m", "control:zstd").code == 0
    assert tidemark("land", "losses", losses_file("foreign")).code == 0
    query = ("sql", "from monthly_loss order by all", "--format", "csv")
    figures, tables = tidemark(*query).out, dump()
    files = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    environment = {
        "PATH": tools, "HOME": str(tmp_path), "TIDEMARK_HOME": str(home),
        "BACKUP": str(tmp_path / "backup"), "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    run_shell(commands()["backup", "a folder"], environment)
    shutil.rmtree(home)
    run_shell(commands()["restore", "a folder"], environment)
    assert tidemark(*query).out == figures
    back = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    assert {file for file in files if not file.startswith("work/")} <= back
    assert dump() == tables
    assert tidemark("score", "-m", "control:gzip", "-s", "news").code == 0
    assert tidemark("check", "--deep").out == "sound\n"
    assert "foreign" in tidemark(*query).out


@needs_extra("object_store")
@pytest.mark.slow
def test_a_bucket_comes_back_on_another_machine(
    tidemark: Tidemark, tmp_path: Path, tools: str, losses_file: Any, dump: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    aws = shutil.which("aws")
    if aws is None:
        pytest.skip("needs the AWS command line (pip install awscli)")
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([f"{number}: sand and tide, " * 20 for number in range(3)]))
    query = ("sql", "from monthly_loss order by all", "--format", "csv")
    with object_store() as port:
        keys = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}
        for name, value in keys.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()  # they have read the environment
        client = boto3.client("s3")
        for bucket in ("live", "backup"):
            client.create_bucket(Bucket=bucket)
        here = {"home": "s3://live/root", "work_dir": tmp_path / "here"}
        there = {"home": "s3://live/root", "work_dir": tmp_path / "there"}
        imported = ("import", "texts", texts, "--source", "news", "--month", "2024-01")
        assert tidemark(*imported, **here).code == 0
        assert tidemark("score", "-m", "control:zstd", **here).code == 0
        assert tidemark("land", "losses", losses_file("foreign"), **here).code == 0
        figures, tables = (
            tidemark(*query, **here).out,
            dump(here["home"], work_dir=here["work_dir"]),
        )
        environment = {
            "PATH": f"{tools}:{Path(aws).parent}", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT),
            "TIDEMARK_HOME": "s3://live/root", "TIDEMARK_WORK_DIR": str(there["work_dir"]),
            "BACKUP": "s3://backup/root", **keys,
        }  # fmt: skip
        run_shell(commands()["backup", "a bucket"], environment)
        s3fs.S3FileSystem().rm("live/root", recursive=True)
        run_shell(commands()["restore", "a bucket"], environment)
        assert tidemark(*query, **there).out == figures
        assert dump(there["home"], work_dir=there["work_dir"]) == tables
        assert "take-over" in tidemark("land", "losses", losses_file("more"), **here).err
        s3fs.S3FileSystem.clear_instance_cache()
