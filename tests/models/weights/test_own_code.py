"""Code and pickles of a model: what is refused, and what is not run."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ModelLoadError, NotMeasurable, UsageError
from core.settings import Settings
from models.catalogue import ModelEntry, make_entry
from models.scoring import engines
from models.scoring.token_scorer import CausalLM, load_causal_lm
from models.weights.checkpoint import open_checkpoint
from models.weights.files import EVERYTHING, folder_digest, linked_files
from tests.models.conftest import edit_json, nats, record_batch


def own_model(folder: Path, code: str) -> ModelEntry:
    """Turn a folder's Llama into one with own code, and return its trusted entry."""
    code_of = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    edit_json(
        folder / "config.json", model_type="own", architectures=["OwnModel"], auto_map=code_of
    )
    (folder / "own.py").write_text(code)
    return trusted(folder)


def trusted(folder: Path) -> ModelEntry:
    digest = folder_digest(folder, EVERYTHING)
    return ModelEntry(name="tiny", location=str(folder), trust="code", revision=digest)


def test_own_code_needs_trust_and_a_pinned_revision(folder: Path, settings: Settings) -> None:
    entry = own_model(folder, "raise SystemExit")
    with pytest.raises(
        ModelLoadError,
        match=f"own.OwnModel.*models add .*{folder} --revision {entry.revision} --trust code",
    ):
        open_checkpoint(str(folder), None, settings)
    files = open_checkpoint(str(folder), entry.revision, settings, is_trusted=True)
    assert files.has_own_code and files.context == 64
    with pytest.raises(ModelLoadError, match="runs in a process of its own"):
        load_in_this_process(files)
    for revision in (None, "main", "v1.0", str(entry.revision)[:12]):
        with pytest.raises(UsageError, match="needs a pinned revision"):
            make_entry({"name": "m", "location": "a/b", "trust": "code", "revision": revision})
    (folder / "more.py").write_text("")
    with pytest.raises(ModelLoadError, match=f"expected {entry.revision}; they changed"):
        open_checkpoint(str(folder), entry.revision, settings, is_trusted=True)


def load_in_this_process(files: Any) -> None:
    from models.weights.loading import load_weights

    load_weights(files)


def test_code_from_elsewhere_and_without_a_causal_model_is_refused(
    folder: Path, settings: Settings
) -> None:
    own_model(folder, "")
    for code, kind, says in (
        ({"AutoModelForCausalLM": "other/repo--own.Model"}, ModelLoadError, "another repository"),
        ({"AutoModel": "own.Model"}, NotMeasurable, "has no AutoModelForCausalLM"),
    ):
        edit_json(folder / "config.json", auto_map=code)
        with pytest.raises(kind, match=says):
            open_checkpoint(str(folder), trusted(folder).revision, settings, is_trusted=True)


@pytest.mark.parametrize("kind", ["llama", "Yi"])
def test_code_of_a_known_architecture_is_ignored(
    kind: str, llama_folder: str, folder: Path, settings: Settings
) -> None:
    own_model(folder, "raise SystemExit")
    edit_json(folder / "config.json", model_type=kind)
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<s>", "auto_map": {"AutoTokenizer": [None, "own.Tokenizer"]}})
    )
    batch = record_batch(1, text=["The tide leaves a mark on the sand."])
    found = nats(CausalLM.load(str(folder), None, settings), batch)
    expected = nats(CausalLM.load(llama_folder, None, settings), batch)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "target",
    [
        "../../secret",
        "/etc/passwd",
        "../../others",
        "../..",
        "first",  # a chain: the next link leads out
        "../../back",  # leads back into the folder, and may be replaced
        "../inner/../../others/x",
        "../../not_there_yet",
        "../../blobs/x",
    ],
)
def test_a_link_out_of_the_folder_is_refused(target: str, folder: Path, settings: Settings) -> None:
    (folder.parent / "secret").write_text("x")
    (folder.parent / "others").mkdir()
    (folder.parent / "others" / "x").write_text("x")
    (folder.parent / "back").symlink_to(folder / "config.json")
    (folder / "inner").mkdir()
    (folder / "inner" / "link").symlink_to(target)
    if target == "first":
        (folder / "inner" / "first").symlink_to("../../secret")
    with pytest.raises(ModelLoadError, match=r"inner/.* is a link to .*outside of the model's"):
        open_checkpoint(str(folder), "0" * 16, settings, is_trusted=True)


def test_links_inside_the_folder_are_kept_and_pinned(folder: Path, settings: Settings) -> None:
    for name, content in (("one", "a"), ("two", "b")):
        (folder / name).mkdir()
        (folder / name / "data").write_text(content)
    (folder / "chosen").symlink_to("one")
    (folder / "data").symlink_to("chosen/data")
    (folder / "whole").symlink_to(".")
    first = own_model(folder, "").revision
    open_checkpoint(str(folder), first, settings, is_trusted=True)
    (folder / "chosen").unlink()
    (folder / "chosen").symlink_to("two")
    (folder / "data").unlink()
    (folder / "data").symlink_to("one/data")  # the same content as before
    with pytest.raises(ModelLoadError, match=f"expected {first}; they changed"):
        open_checkpoint(str(folder), first, settings, is_trusted=True)


def test_links_of_the_hubs_cache_lead_to_its_blobs(folder: Path, tmp_path: Path) -> None:
    root = tmp_path / "models--a--b"
    snapshot = root / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    blobs = root / "blobs"
    blobs.mkdir()
    for number, path in enumerate(sorted(each for each in folder.iterdir() if each.is_file())):
        (blobs / f"{number:040}").write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(f"../../blobs/{number:040}")
    assert sorted(linked_files(snapshot)) == sorted(blobs.iterdir())
    (root / "aside").write_text("x")
    for target in ("../../aside", "../../blobs", "../../refs/main"):
        (snapshot / "more").symlink_to(target)
        with pytest.raises(ModelLoadError, match="more is a link to"):
            linked_files(snapshot)
        (snapshot / "more").unlink()
    (blobs / "link").symlink_to(root / "aside")
    (snapshot / "more").symlink_to("../../blobs/link")
    with pytest.raises(ModelLoadError, match="more is a link to"):
        linked_files(snapshot)
    (snapshot / "more").unlink()
    blobs.rename(root / "elsewhere")
    blobs.symlink_to("elsewhere")
    with pytest.raises(ModelLoadError, match="is a link to"):
        linked_files(snapshot)


def test_without_the_extra_a_trusted_model_is_refused(
    folder: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = own_model(folder, "raise SystemExit")
    monkeypatch.setattr(engines, "import_parts", lambda part: ())
    with pytest.raises(ModelLoadError, match="tiny: .*extras/own_code starts"):
        load_causal_lm(entry, settings)
