import hashlib
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoModelForCausalLM

from core.corpus.partition import Partition
from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.documents import ImportOptions
from crawlers.imports.sets import import_set
from extras.exchange.lm_eval import export_lm_eval, is_restricted, task_name

Tidemark = Callable[..., Any]
# Texts that templates, JSON readers, YAML and line readers could change.
TEXTS = [
    "{{ 7 * 7 }} {% for x in y %} {# not a comment #} {{ doc.__class__ }}",
    "['a', 'list', 'of Python']", "2024-01-01", "42",
    "!!python/object/apply:os.system ['true']\n---\n*alias &anchor",
    "line\u2028separator \x85 next\x0b\x0c \r\n \r tab\t nul\x00 esc\x1b[31m end ",
    "Ein naïver Café-Besuch – 早い者勝ち。 🙂 \ufeff\u202e",
    "'; drop table models; -- \" \\ %s %(x)s ${HOME} $(id) `id`", "=cmd()|'/c calc'!A1",
    "A longer text, so that several windows are needed. " * 8,
]  # fmt: skip


@pytest.fixture
def model(tiny_model: Path, tmp_path: Path) -> Path:
    """The tiny model with weights large enough to have opinions."""
    folder = tmp_path / "model"
    opinionated = AutoModelForCausalLM.from_pretrained(tiny_model)
    with torch.no_grad():
        for parameter in opinionated.parameters():
            if parameter.dim() > 1:
                parameter.mul_(20)
    opinionated.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((tiny_model / name).read_bytes())
    return folder


@pytest.fixture
def sealed(tidemark: Tidemark, tmp_path: Path) -> str:
    source = "x'; drop table models; --"
    file = tmp_path / "texts.json"
    records = [{"text": text, "licence": "CC0-1.0"} for text in TEXTS]
    records[2]["licence"] = "http://arxiv.org/licenses/nonexclusive-distrib/1.0/"
    del records[3]["licence"]
    file.write_text("\n".join(json.dumps(record) for record in records))
    file = file.rename(file.with_suffix(".jsonl"))
    ran = tidemark("import", "texts", file, "--source", source, "--month", "2024-02",
                   "--min-chars", "1")  # fmt: skip
    assert ran.code == 0, ran.err
    return source


def test_lm_eval_gives_our_figure(
    tidemark: Tidemark, sealed: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lm_eval", reason="lm-eval is not installed: pip install -e '.[bench]'")
    folder = tmp_path / "tasks"
    ran = tidemark("export", "lm-eval", "-s", sealed, "--month", "2024-02", "--output", folder)
    assert ran.code == 0, ran.err
    assert "2 documents have no licence" in ran.err
    assert tidemark("score", "-m", model, "--protocol", "lm-eval").code == 0
    sql = "select bits_per_byte, num_bytes from monthly_loss where protocol = 'lm-eval'"
    [ours] = json.loads(tidemark("sql", sql, "--format", "json").out)
    assert ours["bits_per_byte"] > 1

    moved = folder.rename(tmp_path / "elsewhere")
    [name] = [file.stem for file in moved.glob("*.yaml")]
    theirs = run_harness(model, moved, name, monkeypatch, tmp_path)
    assert math.isclose(theirs["bits_per_byte,none"], ours["bits_per_byte"], rel_tol=1e-5)
    assert theirs["byte_perplexity,none"] == pytest.approx(2 ** theirs["bits_per_byte,none"])
    num_words = sum(len(text.split()) for text in TEXTS)
    assert theirs["word_perplexity,none"] > ours["num_bytes"] / num_words


def run_harness(
    model: Path, folder: Path, task: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> dict[str, float]:
    for name in ("HF_HOME", "HF_DATASETS_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of lm-eval
        from lm_eval import simple_evaluate
        from lm_eval.tasks import TaskManager

        tasks = TaskManager(include_path=str(folder), include_defaults=False)
        results = simple_evaluate(
            model="hf", model_args=f"pretrained={model},dtype=float32", tasks=[task],
            task_manager=tasks, device="cpu", batch_size=1, log_samples=True, bootstrap_iters=0,
        )  # fmt: skip
    samples = results["samples"][task]
    assert sorted(sample["target"] for sample in samples) == sorted(TEXTS)
    figures: dict[str, float] = results["results"][task]
    return figures


@pytest.mark.smoke
def test_texts_and_licences_go_along_unchanged(
    tidemark: Tidemark, sealed: str, tmp_path: Path
) -> None:
    export = ("export", "lm-eval", "-s", sealed, "--month", "2024-02", "--output")
    assert tidemark(*export, tmp_path / "one").code == 0
    assert tidemark(*export, tmp_path / "one").code == 0  # an earlier one is replaced
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    rows = [json.loads(line) for line in files["documents.jsonl"].split(b"\n")[:-1]]
    assert [row["text"] for row in rows] == TEXTS
    assert [row["licence"] for row in rows[1:4]] == [
        "CC0-1.0", "http://arxiv.org/licenses/nonexclusive-distrib/1.0/", "LicenseRef-unknown",
    ]  # fmt: skip
    manifest = json.loads(files["manifest.json"])
    assert manifest["source"] == sealed
    assert manifest["num_restricted"] == 2
    for name, facts in manifest["files"].items():
        assert facts["sha256"] == hashlib.sha256(files[name]).hexdigest()
    assert "| LicenseRef-unknown | 1 |" in files["README.md"].decode()
    [task] = [yaml.load(raw, _Yaml) for name, raw in files.items() if name.endswith(".yaml")]
    assert task["task"] == manifest["task"] == task_name(Partition(sealed, Month("2024-02")))
    assert task["doc_to_target"] == "text"


class _Yaml(yaml.SafeLoader):
    """Knows the harness' tag for functions."""


_Yaml.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


@pytest.mark.parametrize(
    "source",
    ["x'; drop table models; --", "../../x", "..", 'a"b', "a\nb", "=cmd()", "a,b", "a*", "A", "ü",
     "x" * 300, "-rf"],
)  # fmt: skip
def test_any_source_makes_a_safe_name(source: str) -> None:
    name = task_name(Partition(source, None))
    assert name.isascii()
    assert name.replace("_", "").isalnum()
    assert name == name.lower()
    assert len(name) < 100
    assert name != task_name(Partition(source + "_", None))
    plain = task_name(Partition("wikipedia_new", Month("2024-03")))
    assert plain == "tidemark_wikipedia_new_2024_03"


@pytest.mark.parametrize(
    ("licence", "restricted"),
    [("CC-BY-SA-4.0", False), ("MIT", False), ("LicenseRef-unknown", True),
     ("http://arxiv.org/licenses/nonexclusive-distrib/1.0/", True),
     ("http://creativecommons.org/licenses/by/4.0/", False)],
)  # fmt: skip
def test_which_licences_restrict(licence: str, restricted: bool) -> None:
    assert is_restricted(licence) == restricted


def test_what_is_not_sealed_is_refused(tidemark: Tidemark, sealed: str) -> None:
    other = ("export", "lm-eval", "-s", sealed, "--month", "2024-03")
    tidemark(*other).expect(2, "sealed are: 2024-02", out="")
    assert tidemark("export", "lm-eval", "-s", "../../x", "--month", "undated").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("-s news --month 2024-01", "news 2024-01 is not sealed"),
        ("-s news --month soon", "'soon' is not a month"),
        ("--month 2024-01", "Missing option"),
    ],
)
def test_a_wrong_request_is_refused(
    tidemark: Tidemark, home: Path, arguments: str, says: str
) -> None:
    tidemark("export", "lm-eval", *arguments.split()).expect(2, says, out="")
    assert not home.exists()


def test_texts_for_local_use_are_refused(settings: Settings, store: Store, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text(json.dumps({"text": "A text of a web archive. " * 20, "date": "2024-05-03"}))
    options = ImportOptions(is_local=True, scratch=tmp_path / "scratch")
    import_set([file], "news", store, options)
    with pytest.raises(UsageError, match="for local use, and are not exported"):
        export_lm_eval(settings, "news", Month("2024-05"), tmp_path / "export")
    assert not (tmp_path / "export").exists()
