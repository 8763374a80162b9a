import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from core.errors import MalformedInput, ModelLoadError, NotMeasurable, UnknownName
from core.plugins import list_entry_points
from core.settings import Settings
from models.backends import _by_kind, find_backend, identify, load_generator, load_scorer
from models.catalogue import ModelEntry, find_model, parse_catalogue
from models.kinds import BACKENDS, Backend
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


TOY = """
from models.fake import FakeScorer
from models.kinds import Backend


def load_toy(entry, settings):
    return FakeScorer(entry.name, lambda month: 0.5)


BACKEND = Backend(
    kind="toy",
    is_listed=True,
    fields=("served_name",),
    cannot={"write": "a toy writes nothing"},
    identify="toy_backend:load_toy",
    load="toy_backend:load_toy",
)
"""


@pytest.fixture
def with_toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with an entry point, as pip does."""
    (tmp_path / "toy_backend.py").write_text(TOY)
    facts = tmp_path / "toy_backend-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-backend\nVersion: 1\n")
    (facts / "entry_points.txt").write_text("[tidemark.backends]\ntoy = toy_backend:BACKEND\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget_backends()
    yield
    sys.modules.pop("toy_backend", None)
    monkeypatch.undo()
    forget_backends()


def forget_backends() -> None:
    list_entry_points.cache_clear()
    _by_kind.cache_clear()


@pytest.mark.usefixtures("with_toy")
def test_a_package_of_another_project_adds_a_backend() -> None:
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
    with pytest.raises(ValueError, match="api_key is for models of kind api"):
        ModelEntry("small", "toy", api_key="k")


def test_without_its_file_it_is_unknown() -> None:
    with pytest.raises(ValueError, match="no backend of kind 'toy'; expected api, causal_lm"):
        find_backend("toy")
    with pytest.raises(MalformedInput, match="kinds api, causal_lm, (gguf, )?reference"):
        parse_catalogue(b"- {name: small, kind: toy, location: here}", "mine.yaml")


def test_abilities_of_the_kernel() -> None:
    found = {
        each.kind: (bool(each.load), each.answers, bool(each.load_generator), each.codes)
        for each in BACKENDS
    }
    assert found == {
        "api": (False, True, True, False),
        "causal_lm": (True, True, True, True),
        "control": (True, False, False, False),
        "fake": (True, False, False, False),
        "reference": (True, True, True, True),
    }


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda each: each.kind)
def test_each_function_that_a_backend_names_is_there(backend: Backend) -> None:
    for name in vars(backend).values():
        if isinstance(name, str) and ":" in name:
            module, _, function = name.partition(":")
            assert callable(getattr(importlib.import_module(module), function))
