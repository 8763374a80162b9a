import json
import math
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, AutoTokenizer

from core.corpus.partition import Partition, Seal, tables_of
from core.corpus.sealing import seal_partition
from core.errors import StorageError, UsageError
from core.month import Month
from core.schemas.tables import DOCUMENTS
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from extras.reference_models.packing import (
    END,
    END_ID,
    IGNORED,
    START_ID,
    PackedCorpus,
    _pack,
    _windows,
)
from extras.reference_models.reference import Recipe, train_reference
from models.backends import load_scorer
from models.catalogue import ModelEntry, find_model, models_folder
from models.scoring.protocols import get_protocol
from simulator.world import World
from tests.forks import forking

FIRST = Month("2024-01")
CUTOFF = FIRST + 1


class Corpus(NamedTuple):
    store: Store
    settings: Settings
    seals: list[Seal]  # of four months

    def until(self, month: Month) -> list[Seal]:
        return [seal for seal in self.seals if str(seal.partition.month) <= str(month)]


def documents(source: str, month: Month | None, texts: Sequence[str]) -> pa.Table:
    rows = [
        {
            "document_id": f"{source}-{month}-{number}", "source": source,
            "month": month.first_day if month else None, "native_id": str(number),
            "date_kind": "given", "licence": "CC0-1.0", "num_chars": len(text),
            "num_bytes": len(text.encode()), "sha256_text": f"{hash(text):x}", "text": text,
        }
        for number, text in enumerate(texts)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=DOCUMENTS)


def seal(store: Store, source: str, month: Month | None, texts: Sequence[str]) -> Seal:
    return seal_partition(store, Partition(source, month), [documents(source, month, texts)])


@pytest.fixture(scope="module")
def stories() -> dict[Month, list[str]]:
    world = World(0, FIRST, FIRST + 3, stories_per_month=18)
    return {
        month: ["\n\n".join(story.paragraphs) for story in world.stories(month, "news")]
        for month in world.months
    }


@pytest.fixture
def corpus(tmp_path: Path, stories: dict[Month, list[str]]) -> Corpus:
    store = Store(str(tmp_path))
    seals = [seal(store, "news", month, texts) for month, texts in stories.items()]
    return Corpus(store, Settings(home=str(tmp_path), device="cpu"), seals)


def recipe(name: str = "small", **changes: object) -> Recipe:
    tiny = Recipe(name, CUTOFF, vocabulary_size=600, hidden=32, heads=2, context=64, epochs=1)
    return replace(tiny, **changes)  # type: ignore[arg-type]


def train(
    corpus: Corpus,
    folder: Path,
    taught: Recipe | None = None,
    seals: Sequence[Seal] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ModelEntry:
    learnt = corpus.until(CUTOFF) if seals is None else seals
    taught = taught or recipe(folder.name)
    return train_reference(learnt, corpus.store, folder, taught, corpus.settings, progress)


def weights(folder: Path) -> str:
    return sha256_of_file(folder / "model.safetensors")


def bits_per_byte(folder: Path, corpus: Corpus) -> list[float]:
    scorer = load_scorer(find_model(str(folder), corpus.settings), corpus.settings)
    figures = []
    for sealed in corpus.seals:
        batches = (
            batch
            for path in sealed.parts
            for batch in pa.parquet.read_table(corpus.store.url(path)).to_batches()
        )
        losses = pa.concat_tables(scorer.score(batches, get_protocol("default")))
        nats, size = (sum(losses[name].to_pylist()) for name in ("nll_nats", "num_bytes"))
        figures.append(nats / math.log(2) / size)
    return figures


def test_bits_per_byte_jump_after_the_cutoff(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "models" / "small"
    taught = recipe(epochs=8, hidden=64, vocabulary_size=1024, batch=4)
    train(corpus, folder, taught)
    first, second, third, fourth = bits_per_byte(folder, corpus)
    assert max(first, second) < 1.5
    assert min(third, fourth) > 1.5 * max(first, second)


def test_the_folder_is_an_ordinary_one_with_a_record(corpus: Corpus) -> None:
    folder = models_folder(corpus.settings) / "small"
    steps: list[tuple[int, int]] = []
    torch.manual_seed(42)
    expected = torch.rand(1)
    torch.manual_seed(42)
    entry = train(
        corpus, folder, recipe(seed=5), progress=lambda done, total: steps.append((done, total))
    )
    assert torch.equal(torch.rand(1), expected), "the random state of others is left alone"
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = "Naïve façade, 東京 – \t two  spaces\r\n"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1)
    assert model.generation_config.eos_token_id == 1
    assert model.dtype == torch.float32
    assert model.config.max_position_embeddings == 64
    assert [step for step, _ in steps] == list(range(1, steps[-1][1] + 1))
    assert (entry.name, entry.kind, entry.cutoff) == ("small", "reference", CUTOFF)
    assert entry == find_model("small", corpus.settings)
    assert sorted(path.name for path in folder.parent.iterdir()) == [".small.lock", "small"]
    record = json.loads((folder / "tidemark.json").read_text())
    assert (record["cutoff"], record["provenance"], record["seed"]) == ("2024-02", "planted", 5)
    assert record["recipe"]["context"] == 64
    assert [partition["digest"] for partition in record["partitions"]] == [
        sealed.digest for sealed in corpus.seals[:2]
    ]
    assert record["num_tokens_seen"] > 1000


def test_the_seed_decides_the_weights(corpus: Corpus, tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        seals = corpus.until(CUTOFF)[:: -1 if name == "b" else 1]
        train(corpus, tmp_path / name, recipe(name, seed=seed), seals)
    assert weights(tmp_path / "a") == weights(tmp_path / "b")
    assert weights(tmp_path / "a") != weights(tmp_path / "c")


def test_a_trained_model_is_used_again_until_something_changes(
    corpus: Corpus, tmp_path: Path
) -> None:
    folder = tmp_path / "small"
    steps: list[int] = []

    def num_steps(seals: list[Seal], taught: Recipe) -> int:
        steps.clear()
        train(corpus, folder, taught, seals, lambda done, _: steps.append(done))
        return len(steps)

    assert num_steps(corpus.until(CUTOFF), recipe()) > 0
    assert num_steps(corpus.until(CUTOFF), recipe()) == 0
    before = weights(folder)
    assert num_steps(corpus.until(CUTOFF), recipe(learning_rate=1e-3)) > 0
    assert weights(folder) != before
    assert num_steps(corpus.until(FIRST), recipe(learning_rate=1e-3)) > 0


def test_a_stopped_run_goes_on_and_gives_the_same_weights(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught = recipe(epochs=2)
    train(corpus, tmp_path / "small", taught)
    monkeypatch.setattr("extras.reference_models.reference._CHECKPOINT_SECONDS", 0.0)
    stopped = tmp_path / "again" / "small"
    steps: list[int] = []

    def stop_often(done: int, total: int) -> None:
        steps.append(done)
        if len(steps) % 7 == 0 and done < total:
            raise KeyboardInterrupt

    for _ in range(1000):
        try:
            train(corpus, stopped, taught, progress=stop_often)
            break
        except KeyboardInterrupt:
            assert not stopped.exists()
    assert len(steps) > steps[-1]
    assert weights(stopped) == weights(tmp_path / "small")


KILLED = """
import torch
from core.corpus.partition import list_sealed
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from pathlib import Path
import extras.reference_models.reference as reference
from tests.forks import serve
reference._CHECKPOINT_SECONDS = 0.05
torch.set_num_threads(1)
def train(job):
    store = Store(job["home"])
    recipe = reference.Recipe("small", Month("2024-02"), vocabulary_size=600, hidden=32, heads=2,
                              context=64, epochs=10)
    seals = [seal for seal in list_sealed(store) if seal.partition.month <= recipe.cutoff]
    settings = Settings(home=job["home"], device="cpu")
    reference.train_reference(seals, store, Path(job["folder"]), recipe, settings)
serve(train)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_and_gives_the_same_weights(corpus: Corpus, tmp_path: Path) -> None:
    undisturbed = tmp_path / "one" / "small"
    killed = tmp_path / "two" / "small"
    checkpoint = killed.parent / ".small.training" / "checkpoint.pt"
    with forking(KILLED, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}) as forks:
        assert forks.run({"home": corpus.store.root, "folder": str(undisturbed)}) == 0
        job = {"home": corpus.store.root, "folder": str(killed)}
        for _ in range(2):
            seen = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
            child = forks.start(job)
            while not checkpoint.exists() or checkpoint.stat().st_mtime_ns == seen:
                os.kill(child, 0)  # fails where it has ended
                time.sleep(0.005)
            os.kill(child, signal.SIGKILL)
            assert forks.wait() == -signal.SIGKILL
            assert not killed.exists()
        assert forks.run(job) == 0
    assert weights(killed) == weights(undisturbed)


def photos(store: Store) -> Seal:
    partition = Partition("photos", FIRST)
    row = {"native_id": "a", "date_kind": "given", "licence": "MIT", "media_kind": "image"}
    rows = [{**row, "codec": "grey8", "media": b"pixels"}]
    return seal_partition(store, partition, tables_of(rows, partition))


@pytest.mark.parametrize(
    ("seals_of", "says"),
    [
        (lambda corpus: corpus.seals, "news 2024-03"),
        (lambda c: [*c.seals[:1], photos(c.store)], "photos 2024-01 holds image; leave it out"),
        (lambda corpus: [seal(corpus.store, "books", None, ["A dark night."])], "books undated"),
        (lambda corpus: [], "no text up to 2024-02"),
        (lambda corpus: [seal(corpus.store, "empty", FIRST, [])], "no text up to 2024-02"),
        (lambda corpus: [seal(corpus.store, "empty", FIRST, [""])], "no text up to 2024-02"),
    ],
)
def test_what_must_not_be_learnt_is_refused(
    corpus: Corpus, tmp_path: Path, seals_of: Callable[[Corpus], list[Seal]], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        train(corpus, tmp_path / "small", seals=seals_of(corpus))
    assert not (tmp_path / "small").exists()


def test_empty_and_odd_texts_are_learnt(corpus: Corpus, tmp_path: Path) -> None:
    texts = ["", "a", "<|end|><|start|>", "\U0001f642" * 500, "\x00"]
    odd = seal(corpus.store, "odd", FIRST, texts)
    assert train(corpus, tmp_path / "small", seals=[odd]).name == "small"


def test_a_folder_of_another_name_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must end in the model's name, small"):
        train(corpus, tmp_path / "big", recipe("small"))


def test_a_folder_of_somebody_elses_is_left_alone(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="did not train it"):
        train(corpus, tmp_path / "small")
    assert (tmp_path / "small" / "thesis.tex").read_text() == "years of work"


def test_a_damaged_record_means_training_again(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    train(corpus, folder)
    before = weights(folder)
    (folder / "tidemark.json").write_text("{")
    train(corpus, folder)
    assert weights(folder) == before


def test_a_damaged_partition_is_named(corpus: Corpus, tmp_path: Path) -> None:
    part = Path(corpus.store.url(corpus.seals[0].parts[0]))
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(StorageError, match="month=2024-01"):
        train(corpus, tmp_path / "small")


@pytest.mark.parametrize(
    "changes",
    [
        {"vocabulary_size": 257}, {"layers": 0}, {"heads": 3}, {"context": 1}, {"epochs": 0},
        {"batch": 0}, {"seed": -1}, {"learning_rate": 0.0}, {"learning_rate": math.nan},
    ],
)  # fmt: skip
def test_a_recipe_that_cannot_work_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(changes))):
        recipe(**changes)


@pytest.mark.parametrize("name", ["", ".hidden", "control:zstd", "a/b", "é"])
def test_a_name_that_is_no_folder_or_is_a_controls_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a reference model"):
        Recipe(name, Month("2024-01"))


def make_corpus(lengths: list[int], context: int) -> PackedCorpus:
    """Documents of consecutive token ids from 100, an end token after each."""
    tokens: list[int] = []
    ends = []
    for length in lengths:
        tokens += [*range(100 + len(tokens), 100 + len(tokens) + length), END_ID]
        ends.append(len(tokens))
    bounds = _windows(np.array(ends, dtype=np.int64), context - 1)
    return PackedCorpus(Tokenizer(models.BPE()), np.array(tokens, dtype=np.uint32), bounds)


def test_windows_cover_every_document_once_and_cross_none() -> None:
    corpus = make_corpus([3, 0, 10, 4], context=6)
    windows = [corpus.tokens[begin:end].tolist() for begin, end in corpus.bounds]
    assert windows == [
        [100, 101, 102, END_ID],
        [END_ID],
        [105, 106, 107, 108, 109],
        [110, 111, 112, 113, 114],
        [END_ID],
        [116, 117, 118, 119, END_ID],
    ]


def test_a_window_begins_with_the_start_token_and_predicts_all_of_its_text() -> None:
    corpus = make_corpus([3, 1], context=8)
    inputs, targets = corpus.tensors(np.array([0, 1]))
    assert inputs[0].tolist() == [START_ID, 100, 101, 102]
    assert targets[0].tolist() == [100, 101, 102, END_ID]
    assert inputs[1, :2].tolist() == [START_ID, 104]
    assert targets[1].tolist() == [104, END_ID, IGNORED, IGNORED]


@pytest.mark.parametrize("batch", [1, 3, 8, 1000])
def test_an_epoch_holds_every_window_once(batch: int) -> None:
    corpus = make_corpus(list(range(1, 60)), context=9)
    batches = corpus.epoch(batch, 7, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(corpus.bounds)))
    assert len(batches) == -(-len(corpus.bounds) // batch)


def test_the_order_of_an_epoch_follows_from_its_seed() -> None:
    corpus = make_corpus(list(range(1, 60)), context=9)
    first, again, second, other = (
        np.concatenate(corpus.epoch(4, *seed)).tolist() for seed in ((7, 0), (7, 0), (7, 1), (8, 0))
    )
    assert first == again
    assert first != second
    assert first != other


def test_a_text_that_spells_the_end_is_one_document(tmp_path: Path) -> None:
    letters = ["<|start|>", END, *"ab<|end>"]
    tokenizer = Tokenizer(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    tokenizer.add_special_tokens(["<|start|>", END])
    path = tmp_path / "tokens.uint32"
    ends = _pack(tokenizer, iter([[f"a{END}b", "b"]]), path)
    spelled = [letters.index(letter) for letter in f"a{END}b"]
    assert np.fromfile(path, dtype=np.uint32).tolist() == [*spelled, END_ID, 3, END_ID]
    assert ends == [len(spelled) + 1, len(spelled) + 3]
