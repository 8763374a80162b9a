import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from models.catalogue import find_model, list_shipped
from models.weights import hub as hub_module
from models.weights.files import EVERYTHING, folder_digest
from simulator.faults import FaultKind
from simulator.server import Fault
from simulator.sites.hub import TOKEN

NAME = "someone/tiny"
UNREACHABLE = {"sites__hub": "http://127.0.0.1:9"}


def test_models_are_fetched_shown_and_evicted(
    at_hub: Callable[..., Any], hub: Any, tiny_model: Path
) -> None:
    commit = hub.site.add(NAME, tiny_model, revision="v1")
    at_hub("models", "add", "mine", NAME, "--revision", "v1").expect(0)
    assert "cached" in at_hub("models", "show", "mine").out
    assert at_hub("models", "evict", "mine").out == "mine: not cached\n"

    ran = at_hub("models", "fetch", "mine")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{NAME}: ")
    assert ran.out.endswith(f"KiB fetched, commit {commit}\n")
    assert f"here, commit {commit}" in at_hub("models", "fetch", NAME).out
    assert f"yes, commit {commit}" in at_hub("models", "show", "mine").out
    shown = at_hub("models", "cache").out
    assert "mine" in shown
    assert commit[:12] in shown
    assert "of what the disk has" in shown
    assert "of 1.0 MiB" in at_hub("models", "cache", model_cache_bytes=str(2**20)).out

    ran = at_hub("models", "evict", "mine", **UNREACHABLE)  # nothing is asked of the hub
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("KiB freed\n")
    assert list(hub.cache.glob("models--*")) == []


def test_own_code_is_trusted_by_one_command(
    at_hub: Callable[..., Any], hub: Any, home: Path, tiny_model: Path, tmp_path: Path
) -> None:
    shipped = at_hub("models", "add", "qwen-7b", "--trust", "code", **UNREACHABLE).expect(0)
    [entry] = [each for each in list_shipped() if each.name == "qwen-7b"]
    assert f"huggingface.co/Qwen/Qwen-7B/tree/{entry.revision}" in shipped.out
    found = find_model("qwen-7b", Settings(home=str(home)))
    assert found == replace(entry, trust="code")

    commit = hub.site.add(NAME, tiny_model)
    assert f"tree/{commit}" in at_hub("models", "add", "mine", NAME, "--trust", "code").out
    hub.site.add(NAME, tmp_path)  # what comes later is not trusted
    assert f"tree/{commit}" in at_hub("models", "add", "mine", "--trust", "code", **UNREACHABLE).out

    folder = shutil.copytree(tiny_model, tmp_path / "own")
    digest = folder_digest(folder, EVERYTHING)
    assert f"digest {digest}" in at_hub("models", "add", "own", str(folder), "--trust", "code").out


def test_a_model_without_a_location_is_one_of_the_catalogue(at_hub: Callable[..., Any]) -> None:
    at_hub("models", "add", "nobody", "--trust", "code").expect(2, "give the location of nobody")
    at_hub("models", "add", "qwen-7b").expect(2, "give the location of qwen-7b")
    at_hub("models", "add", "qwen-7", "--trust", "code").expect(2, "known names like it: qwen-7b")


@pytest.mark.parametrize("location", ["./missing", "~/missing", "a/b/missing", "missing.pth"])
def test_a_model_at_a_path_that_does_not_exist_is_refused(
    tidemark: Callable[..., Any], home: Path, location: str
) -> None:
    told = f"there is no file or folder {location} here"
    tidemark("models", "add", "mine", location).expect(2, told, out="")
    assert not (home / "catalogue.yaml").exists()


def test_a_model_in_a_folder_is_found_from_other_folders(
    tidemark: Callable[..., Any], home: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_model.parent)
    tidemark("models", "add", "mine", f"./{tiny_model.name}").expect(0)
    assert find_model("mine", Settings(home=str(home))).location == str(tiny_model)


@pytest.mark.parametrize("kind", ["stall", "drip"])
def test_a_hub_that_does_not_end_its_answer_is_given_up(
    at_hub: Callable[..., Any], hub: Any, kind: FaultKind, tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    hub.site.add(NAME, tiny_model)
    hub.web.faults.append(Fault(kind, "hub", "/api/models", 9))
    monkeypatch.setattr(hub_module, "WHOLE_TIMEOUT_S", 0.2)
    told = "the hub did not give it (TimeoutError: no whole answer in 0.2 s)"
    at_hub("models", "add", "mine", NAME, "--trust", "code").expect(1, told, out="")


def test_old_revisions_go_and_the_one_in_use_stays(
    at_hub: Callable[..., Any], hub: Any, tiny_model: Path, tmp_path: Path
) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    for path in tiny_model.iterdir():
        (newer / path.name).write_bytes(path.read_bytes())
    (newer / "config.json").write_text("{ }")
    hub.site.add(NAME, newer)
    pinned = hub.site.add(NAME, tiny_model, revision="v1")
    at_hub("models", "fetch", NAME)
    at_hub("models", "add", "mine", NAME, "--revision", "v1")
    ran = at_hub("models", "evict", "mine", "--old")
    assert ran.out == "mine: the revision that runs use is not cached; nothing removed\n"
    at_hub("models", "fetch", "mine")
    assert "B freed" in at_hub("models", "evict", "mine", "--old").out
    (folder,) = hub.cache.glob("models--*/snapshots/*")
    assert folder.name == pinned


def test_one_that_fails_does_not_stop_the_others(
    at_hub: Callable[..., Any], hub: Any, tiny_model: Path
) -> None:
    hub.site.add(NAME, tiny_model)
    hub.site.add("someone/gated", tiny_model, gated=True)
    ran = at_hub("models", "fetch", "someone/gated", NAME, "someone/absent").expect(1)
    assert ran.out.startswith(f"{NAME}: ")
    first, second = ran.err.splitlines()
    assert first.startswith("failed: someone/gated: is gated on the hub")
    assert second.startswith("failed: someone/absent: ")


@pytest.mark.parametrize("command", ["fetch", "evict"])
def test_what_is_not_of_the_hub_is_left_alone(
    at_hub: Callable[..., Any], command: str, tiny_model: Path
) -> None:
    for name, says in [
        ("nope", "unknown model 'nope'"),
        (str(tiny_model), "does not manage folders"),
        ("control:zstd", "controls need no files"),
    ]:
        at_hub("models", command, name).expect(2, says, out="")
    assert (tiny_model / "config.json").is_file()


@pytest.mark.slow
def test_a_run_says_at_once_which_models_it_will_not_get_and_scores_the_others(
    at_hub: Callable[..., Any],
    hub: Any,
    tiny_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub.site.add(NAME, tiny_model)
    hub.site.add("someone/gated", tiny_model, gated=True)
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(["a text of some length, " * 5]))
    assert at_hub("import", "texts", file, "--source", "book", "--undated").code == 0
    score = ("score", "-m", NAME, "-m", "someone/gated", "-m", "control:zstd")
    ran = at_hub(*score).expect(1, out="2 cells landed\n")
    warned, failed = [line for line in ran.err.splitlines() if "someone/gated" in line]
    assert warned.startswith("warning: someone/gated: is gated on the hub")
    assert failed.startswith("failed: someone/gated: ")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    at_hub(*score).expect(0, out="1 cell landed\n")


@pytest.mark.long
def test_an_edited_fact_reaches_the_views_at_once(
    tidemark: Any, losses_file: Callable[..., Path], home: Path
) -> None:
    def ask(sql: str) -> list[dict[str, Any]]:
        return list(json.loads(tidemark("sql", sql, "--format=json").out))

    tidemark("models", "add", "mine", NAME).expect(0)
    tidemark("land", "losses", losses_file("mine")).expect(0)
    assert ask("from train_test_gap") == []
    edit = ("models", "edit", "mine", "--cutoff")
    facts = ("--parameters", "9000", "--family", "ours", "--role", "thermometer")
    tidemark(*edit, "2024-02", "--released", "2024-04-01", *facts).expect(0, out="changed mine\n")
    of_source = "from train_test_gap_at(null) where scope = 'source'"
    assert ask(f"select split_date, num_months_before as n {of_source}") == [
        {"split_date": "2024-03-01", "n": 2}
    ]
    assert ask("select released, parameters, family, role, location, revision from models") == [
        {"released": "2024-04-01", "parameters": 9000, "family": "ours", "role": "thermometer",
         "location": NAME, "revision": "r1"}
    ]  # fmt: skip
    files = (home / "catalogue.yaml", home / "warehouse.duckdb")
    before = [path.read_bytes() for path in files]
    for says, *wrong in (
        ("unknown model 'nope'", "nope", "--family", "x"),
        ("compressors are found by themselves", "control:zstd", "--family", "x"),
        ("'2024' is not a month", "mine", "--cutoff", "2024"),
        ("cutoff 2024-05 is after the release on 2024-04-01", "mine", "--cutoff", "2024-05"),
        ("released: ", "mine", "--released", "soon"),
        ("parameters: ", "mine", "--parameters", "0"),
        ("role: ", "mine", "--role", "old"),
        ("give at least one of --cutoff, --released, --parameters, --family, --role", "mine"),
    ):
        tidemark("models", "edit", *wrong).expect(2, says)
    assert [path.read_bytes() for path in files] == before
    tidemark(*edit, "none").expect(0)  # the other facts stay
    assert ask("select cutoff, family from models") == [{"cutoff": None, "family": "ours"}]
    assert ask("from train_test_gap") == []
    tidemark("models", "add", "mine", NAME, "--cutoff", "2024-03", "--replace").expect(0)
    assert ask(f"select split_date {of_source}") == [{"split_date": "2024-04-01"}]
