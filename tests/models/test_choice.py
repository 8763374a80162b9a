import itertools
from pathlib import Path

import pytest

from core.errors import MalformedInput, UsageError
from core.month import Month
from core.settings import Settings, load_settings
from instruments.forecasts import answering_models
from instruments.planning import check_request
from models.backends import load_scorer
from models.catalogue import ModelEntry, add_model, find_model, list_models, list_shipped
from models.choice import chosen_models, settings_for, tags_of

TEXT = """
- control:zstd
- model: EleutherAI/pythia-70m
  dtype: float16
  device: cuda:1
  batch_tokens: 512
  trust: code
  revision: a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4
"""


def write(folder: Path, text: str) -> Settings:
    (folder / "models.yaml").write_text(text, encoding="utf-8", errors="surrogateescape")
    return Settings(home=str(folder))


def test_the_file_chooses_models_and_how_each_is_loaded(tmp_path: Path) -> None:
    assert chosen_models(Settings(home=str(tmp_path))) == Settings().models
    settings = write(tmp_path, TEXT)
    assert chosen_models(settings) == ("control:zstd", "EleutherAI/pythia-70m")
    assert answering_models(settings) == ["EleutherAI/pythia-70m"]
    request = check_request([Month("2024-01")], ["hackernews"], None, settings)
    assert request.models == chosen_models(settings)
    entry = find_model("pythia-70m", settings)  # by its name, the file has its location
    own = settings_for(entry, settings)
    assert (own.dtype, own.device, own.batch_tokens) == ("float16", "cuda:1", 512)
    assert entry.is_trusted
    assert settings_for(find_model("control:zstd", settings), settings) == settings
    assert chosen_models(write(tmp_path, "# nothing yet\n")) == Settings().models


def test_a_given_setting_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, TEXT)
    monkeypatch.setenv("TIDEMARK_MODELS", '["control:gzip"]')
    settings = load_settings(home=str(tmp_path))
    assert chosen_models(settings) == ("control:gzip",)
    entry = find_model("pythia-70m", settings)
    own = settings_for(entry, settings.model_copy(update={"dtype": "float32"}))
    assert (own.dtype, own.device) == ("float32", "cuda:1")


def test_trust_needs_a_pinned_revision(tmp_path: Path) -> None:
    settings = write(tmp_path, "- {model: someone/own-code, trust: code}")
    with pytest.raises(MalformedInput, match=r"models\.yaml: someone/own-code: .*pinned revision"):
        find_model("someone/own-code", settings)


def test_a_model_is_loaded_in_the_files_dtype(llama_folder: Path, tmp_path: Path) -> None:
    entry = find_model(str(llama_folder), Settings(home=str(tmp_path)))
    settings = write(tmp_path, f"- {{model: '{entry.name}', dtype: float64, device: cpu}}")
    assert load_scorer(entry, settings).facts.dtype == "float64"
    given = settings.model_copy(update={"dtype": "float32"})
    assert load_scorer(entry, given).facts.dtype == "float32"


BOMB = "- &a0 x\n" + "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))


@pytest.mark.parametrize(
    "text",
    [
        "gpt2",
        "- 5",
        "- ''",
        "- [gpt2]",
        "- gpt2\n- {model: gpt2}",
        "- {dtype: float32}",
        "- {model: gpt2, dtype: int8}",
        "- {model: gpt2, dtype: 2024-02-30}",
        "- {model: gpt2, device: 'cuda;rm'}",
        "- {model: gpt2, batch_tokens: true}",
        "- {model: gpt2, batch_tokens: " + "9" * 5_000 + "}",
        "- {model: gpt2, batch_tokens: 99999999999}",
        "- {model: gpt2, trust: true}",
        "- {model: " + "a" * 10_000 + "}",
        "- " + "[" * 5_000,
        BOMB,
        "- {model: gpt2, dtype: *a}",
        "- !!python/object/apply:os.getcwd []",
        "#" * (2**20 + 1),
        "\udcff",
    ],
    ids=itertools.count(),
)
def test_hostile_files_are_refused_by_name(text: str, tmp_path: Path) -> None:
    settings = write(tmp_path, text)
    with pytest.raises(MalformedInput, match=r"models\.yaml") as raised:
        chosen_models(settings)
    assert len(str(raised.value)) < 1_000


@pytest.mark.parametrize(
    ("changes", "tags"),
    [
        ({}, ("small", "open", "small-open", "ours")),
        ({"parameters": 5 * 10**8 - 1}, ("tiny", "open", "tiny-open", "ours")),
        ({"parameters": 8 * 10**9, "licence": "other"}, ("large", "ours")),
        ({"parameters": None, "role": "thermometer"}, ("open", "thermometer", "ours")),
        ({"family": None, "licence": None, "parameters": 2 * 10**9}, ("medium",)),
    ],
)
def test_tags_follow_from_known_facts(changes: dict[str, object], tags: tuple[str, ...]) -> None:
    facts = {"name": "own", "location": "a/own", "parameters": 10**9, "licence": "mit",
             "family": "ours"}  # fmt: skip
    assert tags_of(ModelEntry(**{**facts, **changes})) == tags  # type: ignore[arg-type]


def test_nothing_that_costs_money_has_a_tag(settings: Settings) -> None:
    api = {"kind": "api", "location": "http://127.0.0.1:1", "served_name": "a"}
    assert tags_of(ModelEntry(name="a", parameters=10**9, licence="mit", **api)) == ()  # type: ignore[arg-type]
    assert tags_of(find_model("control:zstd", settings)) == ()


def test_a_tag_chooses_models_and_their_options(tmp_path: Path) -> None:
    settings = write(
        tmp_path,
        "- control:zstd\n- model: tag:small-open\n  dtype: float64\n- tag:ours\n"
        "- {model: Qwen/Qwen3-0.6B-Base, dtype: float16}\n",
    )
    own = ModelEntry(name="own", location="a/own", parameters=10**9, licence="mit", family="ours")
    add_model(own, settings)
    names = chosen_models(settings)
    assert names[0] == "control:zstd" and names.count("own") == 1
    small = {e.name for e in list_models(settings) if "small-open" in tags_of(e)}
    assert {"own", "qwen3-0.6b"} < small <= set(names)
    dtypes = {n: settings_for(find_model(n, settings), settings).dtype for n in sorted(small)}
    assert dtypes.pop("qwen3-0.6b") == "float16", "its own line comes first"
    assert set(dtypes.values()) == {"float64"}


@pytest.mark.parametrize("text", ["- tag:smal-open", '- "tag:"', "- tag:control"])
def test_a_tag_without_models_names_the_known_ones(tmp_path: Path, text: str) -> None:
    settings = write(tmp_path, text)
    with pytest.raises(UsageError, match=r"no model has the tag .*small-open.*thermometer"):
        chosen_models(settings)


def test_a_tag_trusts_no_code(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="name the model"):
        chosen_models(write(tmp_path, "- {model: tag:small, trust: code}"))


def test_every_size_and_role_of_the_catalogue_can_be_chosen() -> None:
    tags = {tag for entry in list_shipped() for tag in tags_of(entry)}
    assert tags >= {"tiny-open", "small-open", "medium-open", "large-open", "thermometer",
                    "known-cutoff", "pythia"}  # fmt: skip
