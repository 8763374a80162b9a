from pathlib import Path

import pytest

from core.errors import MalformedInput, UsageError
from core.settings import Settings
from models.catalogue import ModelEntry, add_model, find_model, list_models, list_shipped
from models.choice import chosen_models, settings_for, tags_of

OWN = ModelEntry(name="own", location="a/own", parameters=10**9, licence="mit", family="ours")


def choose(home: Path, text: str) -> Settings:
    (home / "models.yaml").write_text(text)
    return Settings(home=str(home))


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
    settings = choose(
        tmp_path,
        "- control:zstd\n- model: tag:small-open\n  dtype: float64\n- tag:ours\n"
        "- {model: Qwen/Qwen3-0.6B-Base, dtype: float16}\n",
    )
    add_model(OWN, settings)
    names = chosen_models(settings)
    assert names[0] == "control:zstd" and names.count("own") == 1
    small = {e.name for e in list_models(settings) if "small-open" in tags_of(e)}
    assert {"own", "qwen3-0.6b"} < small <= set(names)
    dtypes = {n: settings_for(find_model(n, settings), settings).dtype for n in sorted(small)}
    assert dtypes.pop("qwen3-0.6b") == "float16", "its own line comes first"
    assert set(dtypes.values()) == {"float64"}


@pytest.mark.parametrize("text", ["- tag:smal-open", '- "tag:"', "- tag:control"])
def test_a_tag_without_models_names_the_known_ones(tmp_path: Path, text: str) -> None:
    settings = choose(tmp_path, text)
    with pytest.raises(UsageError, match=r"no model has the tag .*small-open.*thermometer"):
        chosen_models(settings)


def test_a_tag_trusts_no_code(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="name the model"):
        chosen_models(choose(tmp_path, "- {model: tag:small, trust: code}"))


def test_every_size_and_role_of_the_catalogue_can_be_chosen() -> None:
    tags = {tag for entry in list_shipped() for tag in tags_of(entry)}
    assert tags >= {"tiny-open", "small-open", "medium-open", "large-open", "thermometer",
                    "known-cutoff", "pythia"}  # fmt: skip
