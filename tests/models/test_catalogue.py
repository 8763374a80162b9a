import datetime as dt
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from core.errors import MalformedInput, UnknownName, UsageError
from core.month import Month
from core.settings import Settings
from models.catalogue import (
    CONTROLS,
    ModelEntry,
    add_model,
    entry_of_folder,
    find_model,
    list_models,
    list_shipped,
    models_folder,
    parse_catalogue,
)
from models.yaml_list import parse_yaml_list

VALID = """
- name: one
  location: org/one
  released: 2024-04-18
  cutoff: "2023-12"
  cutoff_provenance: stated
  cutoff_precision: month
  cutoff_url: https://example.org/card
  parameters: 7_000_000
  context: 2048
- name: two
  location: org/two
  released: 2024-02
  cutoff: null
  is_chat: true
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path))


def write_reference(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True)
    record = {
        "name": folder.name, "cutoff": "2024-08", "provenance": "planted", "seed": 3,
        "num_parameters": 1000, "recipe": {"context": 256},
    } | changes  # fmt: skip
    (folder / "tidemark.json").write_text(json.dumps(record))
    return folder


def test_the_shipped_catalogue_holds_the_models_of_the_papers(settings: Settings) -> None:
    entries = {entry.name: entry for entry in list_models(settings)}
    llama_2 = entries["llama-2-7b"]
    assert llama_2.cutoff == Month("2022-09")
    assert llama_2.cutoff_provenance == "stated"
    assert entries["llama-65b"].cutoff_precision == "year"
    assert entries["mistral-7b-v0.1"].cutoff is None
    assert {"baichuan2-7b-base", "qwen-7b", "yi-34b", "opt-2.7b", "pythia-12b"} <= set(entries)
    assert set(CONTROLS) <= set(entries)


def test_the_shipped_catalogue_has_the_models_of_2026() -> None:
    entries = list_shipped()
    assert len(entries) >= 150
    assert sum(entry.cutoff is not None for entry in entries) >= 110
    assert Counter(entry.family for entry in entries if entry.role == "known-cutoff") == {
        "chronogpt": 26, "datedgpt": 12
    }  # fmt: skip
    families = {entry.family for entry in entries}
    assert {
        "qwen3", "qwen3.5", "gemma-3", "mistral-small", "ministral-3", "nemotron-3", "seed-oss",
        "olmo-2", "olmo-3", "smollm3", "falcon-h1", "granite-4.0",
        "llama-3.1", "llama-4", "pythia",
    } <= families  # fmt: skip


@pytest.mark.parametrize("entry", list_shipped(), ids=lambda entry: entry.name)
def test_every_fact_shipped_says_where_it_is_from(entry: ModelEntry) -> None:
    assert entry.cutoff_url if entry.cutoff else entry.notes, "a source, or a reason"
    assert entry.notes or entry.cutoff_provenance != "inferred"
    named = set(entry.sources) - {"others"}
    assert named == {fact for fact in named if getattr(entry, fact) is not None}
    facts = ("released", "parameters", "active_parameters", "licence", "context")
    known = {fact for fact in facts if getattr(entry, fact) is not None}
    assert "others" in entry.sources or known <= named

    if entry.cutoff and entry.released:
        assert entry.cutoff.first_day < entry.released
    if entry.released:
        assert dt.date(2019, 1, 1) <= entry.released < dt.date(2026, 12, 1)
    assert (entry.active_parameters or 1) <= (entry.parameters or 1)
    if entry.role == "thermometer":
        assert entry.cutoff, "a thermometer's cutoff is known"
    if entry.role == "known-cutoff":
        assert entry.cutoff_provenance == "stated"


def test_shipped_names_and_locations_are_unique() -> None:
    entries = list_shipped()
    assert max(Counter(entry.name.lower() for entry in entries).values()) == 1
    assert max(Counter(entry.location for entry in entries).values()) == 1


@pytest.mark.parametrize("sources", ["{size: https://a.org}", "{context: card}", "[https://a.org]"])
def test_sources_are_pages_by_fact(sources: str) -> None:
    with pytest.raises(MalformedInput, match="sources"):
        parse_catalogue(f"- {{name: a, location: b/c, sources: {sources}}}".encode(), "mine.yaml")


def test_entries_are_read_with_their_types() -> None:
    one, two = parse_catalogue(VALID.encode(), "mine.yaml")
    assert one.cutoff == Month("2023-12")
    assert one.parameters == 7_000_000
    assert two.released is not None
    assert two.released.isoformat() == "2024-02-01"
    assert two.is_chat
    assert two.cutoff is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("context: 2048", "kontext: 2048", "kontext"),
        ("2023-12", "2023-13", "2023-13"),
        ("2023-12", "12/2023", "YYYY-MM"),
        ("stated", "guessed", "cutoff_provenance"),
        ("precision: month", "precision: year", "December|month"),
        ("  cutoff_precision: month\n", "", "belong together"),
        ("context: 2048", "context: -1", "context"),
        ("context: 2048", "context: many", "context"),
        ("location: org/one", "", "location"),
        ("location: org/one", "location: org/one\n  kind: control", "only causal"),
        ("name: one", "name: control:zstd", "only causal"),
        ("name: one", "name: ''", "name"),
        ("https://example.org", "file:///etc", "cutoff_url"),
        ("2024-04-18", "soon", "released"),
    ],
)
def test_a_bad_entry_is_refused_with_file_and_entry(old: str, new: str, message: str) -> None:
    text = VALID.replace(old, new)
    if new.endswith("year"):
        text = text.replace("2023-12", "2023-11")
    with pytest.raises(MalformedInput, match=message) as caught:
        parse_catalogue(text.encode(), "mine.yaml")
    assert "mine.yaml, entry 1" in str(caught.value)


def test_a_name_that_occurs_twice_is_refused() -> None:
    with pytest.raises(MalformedInput, match=r"mine\.yaml, entry 2.*'one' occurs twice"):
        parse_catalogue(VALID.replace("two", "one").encode(), "mine.yaml")


@pytest.mark.parametrize("text", ["{a: [", "name: one", "- one", "\udcff"])
def test_what_is_no_list_of_entries_is_refused(text: str) -> None:
    with pytest.raises(MalformedInput, match=r"mine\.yaml"):
        parse_catalogue(text.encode(errors="surrogateescape"), "mine.yaml")


BOMB = "\n".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))


@pytest.mark.parametrize(
    "text",
    [
        "- {name: a, location: b, released: 2024-13-45}",
        "- {name: a, location: b, context: " + "9" * 5_000 + "}",
        "- {name: a, location: b, context: 0x" + "f" * 5_000 + "}",
        "- " + "[" * 5_000,
        "- {name: a, location: b, notes: " + "{a: " * 5_000,
        "- {name: a, location: b, released: !!timestamp x}",
        "- {name: a, location: b, context: !!int ''}",
        "- 0x" + "f" * 5_000,
        "- &a0 x\n" + BOMB,
        "- &a0 {name: a, location: b}\n" + BOMB.replace("- &a29", "- {name: &a29") + "}",
        "- {[a]: b}",
        "- {name: a, location: b, context: " + "1:" * 5_000 + "1.5}",
        "- &a {name: a, location: b}\n- {<<: *a, name: c}",
    ],
    ids=itertools.count(),
)
def test_hostile_yaml_is_refused_by_name(text: str) -> None:
    with pytest.raises(MalformedInput, match=r"^mine\.yaml"):
        parse_catalogue(text.encode(), "mine.yaml")


def test_a_catalogue_without_end_is_refused(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "catalogue.yaml").symlink_to("/dev/zero")
    with pytest.raises(MalformedInput, match=r"catalogue\.yaml has more than 1,048,576 bytes"):
        find_model("gpt2", settings)


def test_yaml_cannot_make_objects() -> None:
    with pytest.raises(MalformedInput, match="not YAML"):
        parse_catalogue(b"- !!python/object/apply:os.getcwd []", "mine.yaml")


def test_an_entry_of_the_users_wins_over_the_shipped_one(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "catalogue.yaml").write_text("- {name: gpt2, location: me/gpt2, notes: mine}\n")
    assert find_model("gpt2", settings).location == "me/gpt2"


def test_what_is_added_is_found(settings: Settings) -> None:
    entry = parse_catalogue(VALID.encode(), "x")[0]
    add_model(entry, settings)
    add_model(ModelEntry(name="local", location="/models/local"), settings)
    assert find_model("one", settings) == entry
    assert find_model("org/one", settings) == entry
    assert find_model("local", settings).location == "/models/local"


def test_the_users_catalogue_is_parsed_once_until_it_changes(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_model(ModelEntry("a", location="org/a"), settings)
    parsed: list[str] = []

    def parse(data: bytes, where: str, is_own: bool) -> list[object]:
        if where.endswith("catalogue.yaml"):
            parsed.append(where)
        return parse_yaml_list(data, where, is_own)

    monkeypatch.setattr("models.catalogue.parse_yaml_list", parse)
    assert [find_model("a", settings).location for _ in range(3)] == ["org/a"] * 3
    assert len(parsed) == 1
    add_model(ModelEntry("a", location="org/b"), settings, replace=True)
    assert find_model("a", settings).location == "org/b"


def test_a_name_is_replaced_on_demand_only(settings: Settings) -> None:
    new = ModelEntry(name="gpt2", location="me/gpt2")
    with pytest.raises(UsageError, match="--replace"):
        add_model(new, settings)
    assert find_model("gpt2", settings).location == "openai-community/gpt2"
    add_model(new, settings, replace=True)
    assert find_model("gpt2", settings) == new


def test_controls_cannot_be_added(settings: Settings) -> None:
    with pytest.raises(UsageError, match="found by"):
        add_model(ModelEntry(name="control:zstd", location="x"), settings, replace=True)


def test_a_broken_catalogue_of_the_users_is_left_as_it_is(
    settings: Settings, tmp_path: Path
) -> None:
    path = tmp_path / "catalogue.yaml"
    path.write_text("- {name: one}\n")
    with pytest.raises(MalformedInput, match=r"catalogue\.yaml, entry 1 \(one\)"):
        add_model(ModelEntry(name="two", location="org/two"), settings)
    assert path.read_text() == "- {name: one}\n"


def test_reference_models_are_found_in_their_folder(settings: Settings) -> None:
    folder = write_reference(models_folder(settings) / "until-2024-08")
    write_reference(models_folder(settings) / ".until-2024-09.training")
    found = [entry for entry in list_models(settings) if entry.kind == "reference"]
    assert [entry.name for entry in found] == ["until-2024-08"]
    assert found[0].cutoff == Month("2024-08")
    assert found[0].cutoff_provenance == "planted"
    assert find_model("until-2024-08", settings).location == str(folder)


def test_a_folder_is_named_by_its_last_part(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "a" / "my model").mkdir(parents=True)
    (tmp_path / "a" / "plain").mkdir()
    assert find_model(str(tmp_path / "a" / "plain") + "/", settings).name == "plain"
    assert find_model(str(tmp_path / "a" / "plain"), settings).cutoff is None
    assert find_model(str(tmp_path / "a" / "my model"), settings).name == "my model"
    with pytest.raises(UsageError, match="no name"):
        find_model("/", settings)


def test_the_cutoff_of_a_folder_is_read(settings: Settings, tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "elsewhere" / "mine")
    entry = find_model(str(folder), settings)
    assert (entry.kind, entry.cutoff, entry.context) == ("reference", Month("2024-08"), 256)


@pytest.mark.parametrize("changes", [{"cutoff": "2024"}, {"cutoff": None}, {"recipe": 1}])
def test_a_damaged_record_of_a_reference_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    folder = write_reference(tmp_path / "mine", **changes)
    with pytest.raises(MalformedInput, match=r"mine/tidemark\.json"):
        entry_of_folder(folder)


def test_a_hub_id_outside_the_catalogue_is_taken_as_it_is(settings: Settings) -> None:
    entry = find_model("some-org/Some_Model-1.5B", settings)
    assert (entry.name, entry.location) == ("some-org/Some_Model-1.5B",) * 2
    assert entry.cutoff is None


def test_an_unknown_name_gets_those_spelt_alike(settings: Settings) -> None:
    with pytest.raises(UnknownName, match="llama-2-7b") as caught:
        find_model("lama-2-7b", settings)
    assert "gpt2" not in str(caught.value)
    assert "tidemark models list" in str(caught.value)


@pytest.mark.parametrize("name", ["model.safetensors", "notes.txt"])
def test_a_file_alone_is_no_model(settings: Settings, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match=f"{name} is one file; give the folder that has config"):
        find_model(str(tmp_path / name), settings)


@pytest.mark.parametrize(
    "name", ["./nowhere", "/no/where", "a/b/c", "control:bzip2", "~nobody/x", ""]
)
def test_neither_name_nor_folder_is_refused(settings: Settings, name: str) -> None:
    with pytest.raises(UnknownName, match="unknown model"):
        find_model(name, settings)


@pytest.mark.parametrize(
    "name", ["GPT2", "Gpt2", "\uff47\uff50\uff54\uff12", "openai-community/GPT2"]
)
def test_a_name_that_looks_like_a_known_one_is_refused(
    name: str, settings: Settings, tmp_path: Path
) -> None:
    add_model(ModelEntry("openai-community/gpt2", location="x/y"), settings)
    says = "in letter case, Unicode form or blanks alone"
    with pytest.raises(UsageError, match=says):
        add_model(ModelEntry(name=name, location="me/other"), settings)
    with pytest.raises(UsageError, match=says):
        add_model(ModelEntry(name=name, location="me/other"), settings, replace=True)
    folder = tmp_path / name.rsplit("/", maxsplit=1)[-1]
    folder.mkdir()
    with pytest.raises(UsageError, match=says):
        find_model(str(folder), settings)
    if "/" in name:
        with pytest.raises(UsageError, match=says):
            find_model(name, settings)
