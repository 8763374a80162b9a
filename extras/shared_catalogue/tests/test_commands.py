import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NAME = "someone/tiny"
UNREACHABLE = {"sites__hub": "http://127.0.0.1:9"}


def test_facts_are_compared_with_the_hub(
    at_hub: Callable[..., Any], hub: Any, tiny_model: Path
) -> None:
    hub.site.add(NAME, tiny_model)
    hub.site.state(
        NAME, createdAt="2024-04-18T10:00:00.000Z", cardData={"license": "mit"},
        safetensors={"parameters": {"F32": 9000}, "total": 9000},
    )  # fmt: skip
    facts = ("--released", "2024-05-01", "--parameters", "9100")
    at_hub("models", "add", "mine", NAME, *facts).expect(0)
    before = len(hub.web.requests)
    ran = at_hub("models", "check", "mine")
    assert (ran.code, ran.err) == (0, "")
    assert "1 of 1 models compared" in ran.out
    assert len(hub.web.requests) == before + 1

    at_hub("models", "edit", "mine", "--parameters", "7000", "--released", "2023-05-01").expect(0)
    ran = at_hub("models", "check", "mine", "pythia-70m")
    assert ran.code == 1
    assert "1 of 2 models compared" in ran.out
    assert ran.err.splitlines()[1:] == [
        "failed: mine: released differs", "failed: mine: parameters differs"
    ]  # fmt: skip
    assert "the hub has no such model" in ran.err
    assert at_hub("models", "check", "mine", **UNREACHABLE).code == 1


def test_models_whose_tokenizer_the_library_rebuilds_are_listed(
    at_hub: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    """The two folders differ in the class alone; only one class forgets to split digits."""
    for name in ("PreTrainedTokenizerFast", "GPT2Tokenizer"):
        folder = tmp_path / name
        shutil.copytree(tiny_model, folder)
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        tokenizer["model"]["vocab"]["20"] = 257
        tokenizer["model"]["merges"] = [["2", "0"]]
        digits = {"type": "Digits", "individual_digits": True}
        parts = [digits, tokenizer["pre_tokenizer"]]
        tokenizer["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": parts}
        path.write_text(json.dumps(tokenizer))
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"tokenizer_class": name}))
        at_hub("models", "add", f"with-{name}", str(folder)).expect(0)
    ran = at_hub("models", "check", "with-PreTrainedTokenizerFast", "with-GPT2Tokenizer")
    assert (ran.code, ran.err) == (0, "")
    assert "2 of 2 tokenizers are on this machine" in ran.out
    listed = [line for line in ran.out.splitlines() if "with-" in line]
    assert len(listed) == 1
    assert "with-GPT2Tokenizer" in listed[0]
    assert "tokenizer.json" in listed[0]


@pytest.mark.smoke
def test_an_entry_is_proposed_when_it_lacks_nothing(
    tidemark: Any, home: Path, tmp_path: Path
) -> None:
    tidemark("models", "add", "gull", "gulls/gull", "--parameters", "1000").expect(0)
    lacking = tidemark("models", "propose", "gull", "--output", tmp_path / "gull.yaml")
    lacking.expect(2, "revision: name the commit", "licence: is not stated", out="")
    assert not (tmp_path / "gull.yaml").exists()
    (home / "catalogue.yaml").write_text(
        "- {name: gull, location: gulls/gull, revision: abc, released: 2026-02-01, licence: mit, "
        "parameters: 1000, context: 512, notes: no cutoff is stated, "
        "sources: {others: 'https://gulls.example'}}"
    )
    tidemark("models", "propose", "gull", "--output", tmp_path / "gull.yaml").expect(0)
    shown = tidemark("models", "propose", "gull").expect(0).out
    assert (tmp_path / "gull.yaml").read_text() == shown
    assert "location: gulls/gull" in shown
    tidemark("models", "propose", "gull", "--output", tmp_path / "gull.yaml").expect(2, "exists")
