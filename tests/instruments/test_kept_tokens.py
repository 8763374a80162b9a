"""Token losses that are kept when a cell is scored."""

import json
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from core.cells.tokens import choose_documents, is_open
from core.corpus.partition import Partition, list_sealed
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from instruments.losses import plan_scoring, write_losses
from tests.models import conftest as tiny

Names = list[str]
PROTOCOL = "disjoint-32"
TEXTS = [*tiny.SENTENCES, " ".join(tiny.SENTENCES * 3), "x", "مرحبا 👩‍👩‍👧 <b>"]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("two")
    tokenizers = {"merges": tiny.byte_level_bpe(), "bytes": tiny.byte_fallback_bpe()}
    return [
        tiny.save_model(folder / name, tiny.llama_config(), each, bos_token="<s>")
        for name, each in tokenizers.items()
    ]


@pytest.fixture
def ids(store: Store, tmp_path: Path) -> list[str]:
    """Seal texts, of which the last one has no open licence; return their ids."""
    partition = Partition("mine", Month("2024-03"))
    rows = [{"text": text, "licence": "CC-BY-4.0"} for text in TEXTS]
    rows[-1]["licence"] = "LicenseRef-unknown"
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    seal = import_texts(file, partition, store, ImportOptions(min_chars=1))
    table = pq.read_table(store.url(seal.parts[0]), partitioning=None)
    return [str(name) for name in table["document_id"].to_pylist()]


def score(settings: Settings, models: list[str], protocol: str = PROTOCOL) -> None:
    for model in models:
        plan = plan_scoring(model, [protocol], None, None, settings)
        write_losses(plan.cells, plan.entry, settings)


def files(settings: Settings, root: str) -> dict[str, Path]:
    found = Path(settings.home).glob(f"{root}/*/*/*/*.parquet")
    return {str(path.relative_to(settings.home)).partition("/")[2]: path for path in found}


def read(*paths: Path) -> pl.DataFrame:
    return pl.concat(pl.read_parquet(path, hive_partitioning=False) for path in paths)


def assert_sums(tokens: pl.DataFrame, settings: Settings) -> None:
    keys = ["model", "document_id", "chunk_index"]
    sums = tokens.group_by(keys).agg(pl.sum("nll_nats"), pl.len(), pl.max("end_byte"))
    chunks = read(*files(settings, "losses").values())
    chunks = chunks.filter(pl.col("document_id").is_in(tokens["document_id"].to_list()))
    both = chunks.join(sums, on=keys, how="left")
    assert both["len"].to_list() == both["num_tokens"].to_list()
    assert both["nll_nats_right"].to_list() == pytest.approx(both["nll_nats"].to_list(), rel=1e-9)
    sizes = both.group_by("model", "document_id").agg(pl.sum("num_bytes"), pl.max("end_byte"))
    assert sizes["num_bytes"].to_list() == sizes["end_byte"].to_list()


@pytest.mark.parametrize("protocol", [PROTOCOL, "sliding-24-8", "lm-eval-16"])
def test_scoring_keeps_losses_whose_sums_are_the_chunks(
    settings: Settings, models: Names, ids: Names, protocol: str
) -> None:
    score(settings, models, protocol)
    kept = files(settings, "tokens")
    assert set(kept) == set(files(settings, "losses"))
    tokens = read(*kept.values())
    assert set(tokens["document_id"]) == set(ids[:-1])
    assert_sums(tokens, settings)


def test_files_of_losses_stay(settings: Settings, models: Names, ids: Names) -> None:
    found = []
    for number, num_tokens in ((20, 2), (0, 0)):  # a compressor has no tokens
        score(settings.model_copy(update={"kept_documents": number}), [*models, "control:zstd"])
        found.append({path: file.read_bytes() for path, file in files(settings, "losses").items()})
        assert len(files(settings, "tokens")) == num_tokens
        for file in [*files(settings, "losses").values(), *files(settings, "tokens").values()]:
            file.unlink()
    assert found[0] == found[1]


OPEN = ["CC-BY-SA-4.0", "CC-BY-SA-3.0 AND CC-BY-SA-4.0", "MIT", "OGL-UK-3.0",
        "LicenseRef-public-domain", "http://creativecommons.org/licenses/by/4.0/",
        "CC-BY-3.0-US"]  # fmt: skip
CLOSED = ["CC-BY-NC-4.0", "CC-BY-ND-4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/",
          "http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "MIT AND Other", "",
          "CC-BY-4.0-NC", "CC-BY-SA-4.0-nc", "CC-BY-4.0-ND"]  # fmt: skip


def test_open_licences_are_known() -> None:
    assert [name for name in OPEN + CLOSED if is_open(name)] == OPEN


def test_the_choice_of_documents(
    store: Store, ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [seal] = list_sealed(store)
    first = sorted(ids[:-1], key=lambda name: name[16:])
    for number in (20, 3, 0):
        assert choose_documents(store, seal, number) == frozenset(first[:number])
    monkeypatch.setattr("core.cells.tokens.MAX_BYTES", 1)
    assert choose_documents(store, seal, 20) == {ids[TEXTS.index("x")]}
