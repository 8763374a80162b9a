import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import models
from core.errors import MalformedInput, ModelLoadError, NotMeasurable, UnknownName
from core.settings import Settings
from models.backends import find_backend, identify, list_backends, load_generator, load_scorer
from models.catalogue import ModelEntry, find_model, parse_catalogue
from models.scoring.protocols import get_protocol
from models.scoring.scorer import Tally
from models.servers.budget import Budget


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), device="cpu")


def test_a_control_becomes_a_compressor(settings: Settings) -> None:
    scorer = load_scorer(find_model("control:zstd", settings), settings)
    assert type(scorer).__name__ == "Compressor"
    assert scorer.name == "control:zstd"


def test_a_folder_becomes_a_causal_model_under_its_name(
    llama_folder: str, settings: Settings
) -> None:
    scorer = load_scorer(find_model(llama_folder, settings), settings)
    assert (type(scorer).__name__, scorer.name) == ("CausalLM", Path(llama_folder).name)
    entry = ModelEntry(name="mine", location=llama_folder)  # the catalogue's name wins
    assert load_scorer(entry, settings).name == "mine"


def test_the_revision_is_passed_on(llama_folder: str, settings: Settings) -> None:
    entry = ModelEntry(name="mine", location=llama_folder, revision="0123456789abcdef")
    with pytest.raises(ModelLoadError, match="0123456789abcdef"):
        load_scorer(entry, settings)


def test_an_unknown_control_is_refused(settings: Settings) -> None:
    entry = ModelEntry(name="control:none", kind="control", location="none")
    with pytest.raises(UnknownName, match="control:none"):
        load_scorer(entry, settings)


def test_compressors_are_loaded_without_torch() -> None:
    code = (
        "import sys; from core.settings import Settings; from models.backends import load_scorer; "
        "from models.catalogue import find_model; settings = Settings(); "
        "load_scorer(find_model('control:xz', settings), settings); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


TOY = '''
"""Half a nat a byte."""

from models.backends import Backend
from models.fake import FakeScorer


def load_toy(entry, settings):
    return FakeScorer(entry.name, lambda month: 0.5)


BACKEND = Backend(
    kind="toy",
    is_listed=True,
    fields=("served_name",),
    cannot={"write": "a toy writes nothing"},
    identify=load_toy,
    load=load_toy,
)
'''


@pytest.fixture
def with_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_backend.py").write_text(TOY)
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path)])


@pytest.mark.usefixtures("with_toy")
def test_one_file_is_a_backend() -> None:
    (entry,) = parse_catalogue(b"- {name: small, kind: toy, location: here}", "mine.yaml")
    settings = Settings()
    batch = pa.record_batch(
        {"document_id": ["d"], "source": ["s"], "month": [None], "text": ["four"]}
    )
    scorer = load_scorer(entry, settings)
    protocol = get_protocol("default")
    [(table,)] = scorer.score_together([batch], [protocol], [Tally()])
    assert (scorer.name, table["num_bytes"].to_pylist()) == ("small", [4])
    assert identify(entry, settings).scoring_id(protocol) == scorer.scoring_id(protocol)
    assert (entry.backend.load is not None, entry.backend.load_generator) == (True, None)
    with pytest.raises(NotMeasurable, match="small: a toy writes nothing"):
        load_generator(entry, settings, Budget())


@pytest.mark.usefixtures("with_toy")
def test_its_fields_are_checked_as_it_states_them() -> None:
    assert ModelEntry("small", "toy", served_name="s").backend.kind == "toy"
    with pytest.raises(ValueError, match="tokenizer is for models of kind remote"):
        ModelEntry("small", "toy", tokenizer="t")


def test_without_its_file_it_is_unknown() -> None:
    with pytest.raises(ValueError, match="no backend of kind 'toy'; expected api, causal_lm"):
        find_backend("toy")
    with pytest.raises(MalformedInput, match="kinds api, causal_lm, reference, remote, rwkv"):
        parse_catalogue(b"- {name: small, kind: toy, location: here}", "mine.yaml")


def test_abilities_are_those_that_each_file_states() -> None:
    found = {
        each.kind: (bool(each.load), each.answers, bool(each.load_generator), each.codes)
        for each in list_backends()
    }
    assert found == {
        "api": (False, True, True, False),
        "causal_lm": (True, True, True, True),
        "control": (True, False, False, False),
        "fake": (True, False, False, False),
        "reference": (True, True, True, True),
        "remote": (True, True, True, False),
        "rwkv": (True, True, True, False),
    }
