import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from core.storage.store import sha256_of_file
from tests.tiers import needs_extra

pytestmark = pytest.mark.usefixtures("scored")

Tidemark = Callable[..., Any]
ZSTD = "control:zstd/news/2024-01/default"
TINY = "tiny/news/2024-01/default"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scored") / "home"


@pytest.fixture
def scored(tidemark: Tidemark, home: Path, made: Path, tmp_path: Path, tiny_model: Path) -> None:
    """Score once; each test has a copy."""
    if made.exists():
        shutil.copytree(made, home)
        return
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([f"{number}: sand and tide, né, " * 9 for number in range(3)]))
    imported = tidemark("import", "texts", texts, "--source", "news", "--month", "2024-01")
    assert imported.code == 0, imported.err
    ran = tidemark("score", "-m", "control:zstd", "-m", tiny_model, "-s", "news")
    assert ran.code == 0, ran.err
    shutil.copytree(home, made)


def files(home: Path) -> dict[Path, str]:
    kept = [path for path in home.rglob("*") if path.is_file() and "work" not in path.parts]
    return {path: sha256_of_file(path) for path in kept}


def tamper(home: Path, sql: str) -> None:
    with duckdb.connect(str(home / "warehouse.duckdb")) as connection:
        connection.execute(sql)


@pytest.mark.smoke
def test_a_control_is_reproduced_and_nothing_changes(tidemark: Tidemark, home: Path) -> None:
    before = files(home)
    ran = tidemark("check", "cell", ZSTD)
    assert ran.code == 0, ran.err
    assert "relative difference       0.0e+00" in ran.out
    assert "largest chunk difference  0.0e+00 nats" in ran.out
    assert ran.out.splitlines()[-1] == "reproduced"
    assert "tidemark" in ran.out
    assert files(home) == before
    tamper(home, "update chunk_losses set nll_nats = nll_nats * (1 + 5e-7)")
    ran = tidemark("check", "cell", ZSTD)  # a difference within the tolerance is none
    assert (ran.code, "5.0e-07" in ran.out) == (0, True), ran.out


@needs_extra("releases")
def test_a_model_is_reproduced_from_a_release(
    tidemark: Tidemark, home: Path, tiny_model: Path, tmp_path: Path
) -> None:
    assert tidemark("release", "2024-01").code == 0
    ran = tidemark("check", "cell", TINY, "--release", "2024-01", "--model", tiny_model)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "reproduced"
    elsewhere = shutil.copytree(home / "releases" / "2024-01", tmp_path / "downloaded")
    tamper(home, "update chunk_losses set nll_nats = 0")
    assert tidemark("check", "cell", TINY, "--model", tiny_model).code == 1
    again = tidemark("check", "cell", TINY, "--release", elsewhere, "--model", tiny_model)
    assert again.code == 0, again.err


# A sum that stays: what one document gains, another loses.
MOVED = (
    "nll_nats = nll_nats + case when document_id = (select min(document_id) from "
    "chunk_losses) then 1 when document_id = (select max(document_id) from chunk_losses) "
    "then -1 else 0 end"
)
TAMPERED = {
    "nll_nats = nll_nats * (1 + 1e-5)": "relative difference       1.0e-05",
    "num_bytes = num_bytes + 1": "chunks that do not match  3",
    "chunk_index = chunk_index + 1": "chunks that do not match  6",
    "nll_nats = null": "chunks that do not match  3",
    MOVED: "largest chunk difference  1.0e+00 nats",
}


def test_a_tampered_loss_is_not_reproduced(tidemark: Tidemark, home: Path) -> None:
    snapshot = home / "warehouse.duckdb"
    whole = snapshot.read_bytes()
    for change, says in TAMPERED.items():
        snapshot.write_bytes(whole)
        tamper(home, f"update chunk_losses set {change} where model = 'control:zstd'")
        ran = tidemark("check", "cell", ZSTD)
        assert ran.code == 1, change
        assert says in ran.out, change
        assert ran.out.splitlines()[-1] == "NOT reproduced", change
    assert tidemark("check", "--deep").code == 1


def test_names_of_no_cell_are_refused_with_those_that_are_near(
    tidemark: Tidemark, losses_file: Callable[..., Path]
) -> None:
    ran = tidemark("check", "cell", "control:zstd/news/2024-02/default")
    assert ran.code == 2
    assert f"known: {ZSTD}" in ran.err
    assert tidemark("check", "cell", "'; drop table models; --").code == 2
    assert tidemark("land", "losses", losses_file("foreign")).code == 0
    ran = tidemark("check", "cell", "foreign/news/2024-01/default")
    assert ran.code == 2
    assert "scored by tidemark itself" in ran.err
    assert tidemark("check", "cell", ZSTD, "--release", "2024-01").code == 2
    assert tidemark("check", "cell", ZSTD, "--release", "nope").code == 2


def test_text_that_is_gone_or_damaged_is_said(tidemark: Tidemark, home: Path) -> None:
    [part] = home.glob("corpus/source=news/month=2024-01/part*")
    raw = part.read_bytes()
    part.write_bytes(raw[:-1])
    ran = tidemark("check", "cell", ZSTD)
    assert ran.code == 1
    assert part.name in ran.err and "backup" in ran.err
    shutil.rmtree(home / "corpus")
    ran = tidemark("check", "cell", ZSTD)
    assert ran.code == 1
    assert "the text of control:zstd on news 2024-01 under default is no longer under" in ran.err


def test_another_model_is_not_compared(
    tidemark: Tidemark, tiny_model: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(tiny_model, tmp_path / "other"))
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.1}))
    for options, code, says in (
        ((), 2, "unknown model 'tiny'"),
        (("--model", other), 1, "have digest"),
        (("--model", "control:zstd"), 1, "was scored with"),
    ):
        ran = tidemark("check", "cell", TINY, *options)
        assert ran.code == code
        assert says in ran.err


def test_the_dtype_and_the_batches_of_the_record_are_used(
    tidemark: Tidemark, home: Path, tiny_model: Path
) -> None:
    ran = tidemark(
        "check", "cell", TINY, "--model", tiny_model, dtype="bfloat16", batch_tokens="64"
    )
    assert ran.code == 0, ran.out
    assert "scored otherwise" not in ran.out
    [file] = home.glob("losses/model=tiny/*/*/*.parquet")
    total = sum(pq.read_table(file)["nll_nats"].to_pylist())
    assert f"{total:.6f}"[:8] in ran.out
