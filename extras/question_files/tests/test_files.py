import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from core.corpus.questions import Question, list_questions, read_questions
from core.errors import EmptyPartition, MalformedInput, PartitionSealed, UsageError
from core.month import Month
from core.storage.store import Store
from extras.question_files import published
from extras.question_files.importing import import_questions


def gjo(title: str = "Will the bridge open?", right: str | None = "Yes", **fields: Any) -> Any:
    crowd = {"Yes": "86%", "No": "14%"}
    answers = {
        option: {"Correct?": option == right, "Final Crowd Forecast": share}
        for option, share in crowd.items()
    }
    return {
        "Question": title, "Started_time": "Feb 09, 2024 06:00PM UTC",
        "Closed_time": "Mar 06, 2024 07:30PM UTC", "Challenges_list": ["A challenge"],
        "Tags_list": ["US Politics", "Society"], "Description": "It was built in a year.",
        "Possible_Answers_dict": answers, **fields,
    }  # fmt: skip


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def all_of(store: Store) -> dict[str, Question]:
    seals = list_questions(store)
    return {each.title: each for seal in seals for each in read_questions(store, seal)}


def test_a_published_question_of_freshbench(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "gjo.json", [gjo(), gjo("Will it rain?", "No")])
    [seal] = import_questions(path, "freshbench", store)
    assert caplog.messages == []  # nothing is left out
    assert (seal.month, seal.num_questions, seal.is_partial) == (Month("2024-03"), 2, False)
    assert seal.manifest["kind"] == "import" and seal.manifest["files"] == ["gjo.json"]
    question = all_of(store)["Will the bridge open?"]
    assert question.options == ("Yes", "No") and question.answer_index == 0
    assert question.opened_at == dt.datetime(2024, 2, 9, 18, tzinfo=dt.UTC)
    assert (
        question.closed_at == question.resolved_at == dt.datetime(2024, 3, 6, 19, 30, tzinfo=dt.UTC)
    )
    assert question.tags == ("US Politics", "Society")
    assert [each.probability for each in question.crowd_forecast] == [0.86, 0.14]
    assert question.licence == "LicenseRef-unknown" and question.source == "freshbench"
    assert all_of(store)["Will it rain?"].answer_index == 1


def test_later_versions_have_days_and_an_entry_a_line(store: Store, tmp_path: Path) -> None:
    days = {"Started_time": "2024-02-09", "Closed_time": "2024-04-30"}
    lines = [json.dumps(gjo(f"Will {name} win?", **days)) for name in ("Ann", "Bo")]
    (tmp_path / "gjo.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    [seal] = import_questions(tmp_path / "gjo.json", "freshbench", store)
    assert (seal.month, seal.num_questions) == (Month("2024-04"), 2)
    assert all_of(store)["Will Bo win?"].opened_at == dt.datetime(2024, 2, 9, tzinfo=dt.UTC)


def test_noon_and_midnight_are_read_as_in_english(store: Store, tmp_path: Path) -> None:
    times = {"Started_time": "Jan 01, 2024 12:00AM UTC", "Closed_time": "Jan 31, 2024 12:05PM UTC"}
    import_questions(write(tmp_path / "gjo.json", [gjo(**times)]), "freshbench", store)
    [question] = all_of(store).values()
    assert question.opened_at == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert question.closed_at == dt.datetime(2024, 1, 31, 12, 5, tzinfo=dt.UTC)


def test_who_has_no_right_answer_or_two_is_void(store: Store, tmp_path: Path) -> None:
    both = {each: {"Correct?": True, "Final Crowd Forecast": "50%"} for each in ("Yes", "No")}
    values = [gjo("None?", None), gjo("Both?", Possible_Answers_dict=both)]
    import_questions(write(tmp_path / "gjo.json", values), "freshbench", store)
    found = all_of(store)
    assert {(each.status, each.answer_index) for each in found.values()} == {("void", None)}


def test_what_is_there_twice_counts_once(store: Store, tmp_path: Path) -> None:
    values = [gjo(), gjo(), gjo("Other?", "Yes"), gjo("Other?", "No")]
    [seal] = import_questions(write(tmp_path / "gjo.json", values), "freshbench", store)
    assert seal.num_questions == 2 and seal.manifest["left_out"] == {"repeated": 2}
    found = all_of(store)
    assert found["Will the bridge open?"].status == "resolved"
    assert found["Other?"].status == "void"  # two entries, two answers


def test_a_month_that_is_not_over_waits(store: Store, tmp_path: Path) -> None:
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    path = write(tmp_path / "gjo.json", [gjo(), gjo("Now?", Closed_time=today)])
    [seal] = import_questions(path, "freshbench", store)
    assert seal.manifest["passed_over"] == {"month_not_over": 1}
    only = write(tmp_path / "only.json", [gjo("Now?", Closed_time=today)])
    with pytest.raises(EmptyPartition, match="month_not_over"):
        import_questions(only, "other", store)


def test_a_crowd_is_kept_only_where_all_options_have_one(store: Store, tmp_path: Path) -> None:
    answers = {"Yes": {"Correct?": True, "Final Crowd Forecast": "86%"}, "No": {"Correct?": False}}
    path = write(tmp_path / "gjo.json", [gjo(Possible_Answers_dict=answers)])
    import_questions(path, "freshbench", store)
    assert [each.crowd_forecast for each in all_of(store).values()] == [()]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"Question": None}, "'Question' is None; expected a text"),
        ({"Question": "\ud800"}, "lone surrogate"),
        ({"Started_time": "yesterday"}, "'Started_time' is 'yesterday'; expected 'Feb 09"),
        ({"Closed_time": 20240306}, "'Closed_time' is 20240306; expected a text"),
        ({"Closed_time": "Feb 31, 2024 06:00PM UTC"}, "'Closed_time'"),
        ({"Closed_time": "Feb 09, 0001 06:00PM UTC"}, "'Closed_time' is 'Feb 09, 0001"),
        ({"Possible_Answers_dict": ["Yes"]}, "expected an object by option"),
        ({"Possible_Answers_dict": {"Yes": {"Correct?": "True"}}}, "expected 'Correct?'"),
        ({"Possible_Answers_dict": {"Yes": None}}, "the option 'Yes' has None"),
        ({"Tags_list": "Society"}, "expected a list of texts"),
        ({"Description": 7}, "'Description' is 7"),
    ],
)
def test_a_bad_entry_is_named_and_nothing_is_sealed(
    store: Store, tmp_path: Path, bad: dict[str, Any], says: str
) -> None:
    path = write(tmp_path / "gjo.json", [gjo(), gjo("Second?", **bad)])
    with pytest.raises(MalformedInput, match="entry 2") as error:
        import_questions(path, "freshbench", store)
    assert str(path) in str(error.value) and says in str(error.value)
    assert list_questions(store) == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is no JSON"),
        (b"\xff\xfe{}", "not UTF-8 at byte 0"),
        (b"[" * 200_000, "nested too deep"),
        (b"[" * 900 + b"]" * 900, "nested more than 100 levels"),
        (b"[%s]" % (b"9" * 5000), "is no JSON"),
        (b"[1, 2]", "expected entries with 'Possible_Answers_dict'"),
        (b'{"a": 1}', "expected entries with 'Possible_Answers_dict'"),
        (b"[]", "expected entries"),
        (b'{"Possible_Answers_dict": {}}\n{"broken', "line 2 is no JSON"),
        (b'[{"Possible_Answers_dict": {}}, 3]', "entry 2 is 3; expected an object"),
    ],
)
def test_a_file_that_is_none_is_refused(
    store: Store, tmp_path: Path, data: bytes, says: str
) -> None:
    path = tmp_path / "gjo.json"
    path.write_bytes(data)
    with pytest.raises(MalformedInput) as error:
        import_questions(path, "freshbench", store)
    assert str(path) in str(error.value) and says in str(error.value)
    assert list_questions(store) == []


def test_sizes_are_capped(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "gjo.json", [gjo(), gjo("Second?")])
    monkeypatch.setattr(published, "MAX_ENTRIES", 1)
    with pytest.raises(MalformedInput, match="2 entries; at most 1"):
        import_questions(path, "freshbench", store)
    monkeypatch.setattr(published, "MAX_FILE_BYTES", 10)
    with pytest.raises(MalformedInput, match="at most 10"):
        import_questions(path, "freshbench", store)


def test_what_cannot_be_meant_is_refused(store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "gjo.json", [gjo()])
    with pytest.raises(UsageError, match="there is no"):
        import_questions(tmp_path / "none.json", "freshbench", store)
    for name in ("", " ", "manifold"):
        with pytest.raises(UsageError, match="cannot be the name"):
            import_questions(path, name, store)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no file that ends in"):
        import_questions(tmp_path / "empty", "freshbench", store)


def test_the_same_again_changes_nothing_and_others_need_replace(
    store: Store, tmp_path: Path
) -> None:
    april = {"Closed_time": "2024-04-05"}
    path = write(tmp_path / "gjo.json", [gjo(), gjo("April?", **april)])
    first = import_questions(path, "freshbench", store)
    assert import_questions(path, "freshbench", store) == first
    other = write(tmp_path / "other.json", [gjo("May?", Closed_time="2024-05-05"), gjo(right="No")])
    with pytest.raises(PartitionSealed, match="2024-03") as error:
        import_questions(other, "freshbench", store)
    assert "2024-05" not in str(error.value)
    assert list_questions(store) == first  # not even the month that is free
    second = import_questions(other, "freshbench", store, replace=True)
    assert [str(seal.month) for seal in second] == ["2024-03", "2024-05"]
    assert len(list_questions(store)) == 3


def market(name: str = "m1", source: str = "manifold", **fields: Any) -> dict[str, Any]:
    return {
        "id": name, "source": source, "question": f"Will {name} happen?",
        "resolution_criteria": "Resolves to the outcome of the market.", "background": "A story.",
        "market_info_open_datetime": "2024-01-01T10:00:00+00:00",
        "market_info_close_datetime": "2024-12-31T23:59:00+00:00",
        "market_info_resolution_criteria": "N/A", "url": f"https://example.org/{name}",
        "freeze_datetime": "2024-07-11T00:00:00+00:00", "freeze_datetime_value": "0.25",
        "freeze_datetime_value_explanation": "The market value.",
        "source_intro": "A market.", "combination_of": "N/A", "resolution_dates": "N/A", **fields,
    }  # fmt: skip


def resolution(name: str = "m1", to: float | None = 1.0, **fields: Any) -> dict[str, Any]:
    return {
        "id": name, "source": "manifold", "direction": None, "resolution_date": "2024-08-15",
        "resolved_to": to, "resolved": True, **fields,
    }  # fmt: skip


def sets(
    folder: Path, questions: list[Any], resolutions: list[Any], due: str = "2024-07-21"
) -> Path:
    head = {"forecast_due_date": due, "question_set": f"{due}-llm.json"}
    write(folder / "question_sets" / f"{due}-llm.json", {**head, "questions": questions})
    name = f"{due}_resolution_set.json"
    write(folder / "resolution_sets" / name, {**head, "resolutions": resolutions})
    return folder


def test_a_published_market_of_forecastbench(store: Store, tmp_path: Path) -> None:
    folder = sets(tmp_path / "fb", [market(), market("m2")], [resolution(), resolution("m2", 0.0)])
    [seal] = import_questions(folder, "forecastbench", store)
    assert (seal.month, seal.num_questions) == (Month("2024-08"), 2)
    question = all_of(store)["Will m1 happen?"]
    assert question.question_id == "manifold/m1" and question.options == ("Yes", "No")
    assert question.answer_index == 0 and all_of(store)["Will m2 happen?"].answer_index == 1
    assert question.opened_at == dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
    assert question.resolved_at == dt.datetime(2024, 8, 15, tzinfo=dt.UTC)
    crowd = [(each.option, each.probability, each.at) for each in question.crowd_forecast]
    frozen_at = dt.datetime(2024, 7, 11, tzinfo=dt.UTC)
    assert crowd == [("Yes", 0.25, frozen_at), ("No", 0.75, frozen_at)]
    assert question.resolution_criteria is None and question.licence == "CC-BY-SA-4.0"
    assert question.tags == ("manifold",)


def test_data_sets_pairs_and_open_markets_are_passed_over(store: Store, tmp_path: Path) -> None:
    questions = [
        market(), market("open"),
        market("d", "fred", resolution_dates=["2024-08-01"], freeze_datetime_value="5.2"),
        market(["m1", "open"], combination_of=[{}, {}]),  # type: ignore[arg-type]
    ]  # fmt: skip
    resolutions = [
        resolution(), resolution("open", 0.4, resolved=False),
        resolution(["m1", "open"], 1.0, direction=[1, 1]),  # type: ignore[arg-type]
        resolution("d", 1.0, source="fred"),
    ]  # fmt: skip
    [seal] = import_questions(sets(tmp_path / "fb", questions, resolutions), "fb", store)
    assert seal.num_questions == 1
    assert seal.manifest["passed_over"] == {"open": 1, "dataset": 1, "combination": 1}


@pytest.mark.parametrize("to", [0.5, 0.999, None, float("nan")])
def test_a_share_is_void(store: Store, tmp_path: Path, to: float | None) -> None:
    import_questions(sets(tmp_path / "fb", [market()], [resolution(to=to)]), "fb", store)
    assert [each.status for each in all_of(store).values()] == ["void"]


def test_a_market_in_several_sets_counts_once_with_its_latest_value(
    store: Store, tmp_path: Path
) -> None:
    late = market(freeze_datetime="2024-07-25T00:00:00+00:00", freeze_datetime_value="0.6")
    folder = sets(tmp_path / "fb", [late], [resolution()], "2024-08-04")
    sets(folder, [market()], [resolution()])
    [seal] = import_questions(folder, "fb", store)
    assert seal.manifest["left_out"] == {"repeated": 1}
    [question] = all_of(store).values()
    assert question.crowd_forecast[0].probability == 0.6


def test_a_value_from_after_the_answer_is_no_forecast(store: Store, tmp_path: Path) -> None:
    late = market(freeze_datetime="2024-08-15T00:00:00+00:00", freeze_datetime_value="1.0")
    import_questions(sets(tmp_path / "fb", [late], [resolution()]), "fb", store)
    assert [each.crowd_forecast for each in all_of(store).values()] == [()]


def test_a_market_that_nobody_knows_the_opening_of_is_left_out(
    store: Store, tmp_path: Path
) -> None:
    questions = [market(), market("m2", market_info_open_datetime="N/A")]
    folder = sets(tmp_path / "fb", questions, [resolution(), resolution("m2")])
    [seal] = import_questions(folder, "fb", store)
    assert seal.num_questions == 1
    assert seal.manifest["left_out"] == {"no_date": 1, "repeated": 0}


def test_both_kinds_of_sets_are_needed(store: Store, tmp_path: Path) -> None:
    folder = sets(tmp_path / "fb", [market()], [resolution()])
    for kind, lack in (("question_sets", "resolution set"), ("resolution_sets", "question set")):
        with pytest.raises(MalformedInput, match=f"there is no {lack}"):
            import_questions(folder / kind, "fb", store)
    write(folder / "gjo.json", [gjo()])
    with pytest.raises(MalformedInput, match="one of the two kinds alone"):
        import_questions(folder, "fb", store)
    assert list_questions(store) == []


@pytest.mark.parametrize(
    ("questions", "resolutions", "says"),
    [
        ([market(question=None)], [resolution()], "entry 1: 'question' is None"),
        ([market(source=3)], [resolution()], "entry 1: 'source' is 3"),
        ([market(market_info_open_datetime="soon")], [resolution()], "'market_info_open_datetime'"),
        ([market(), 4], [resolution()], "entry 2 is 4; expected an object"),
        ([market()], [resolution(resolution_date="never")], "'resolution_date' is 'never'"),
        ([market()], [resolution(resolved="yes")], "'resolved' is 'yes'; expected true or false"),
        ([market()], [resolution(), "x"], "entry 2 is 'x'; expected an object"),
    ],
)
def test_a_bad_set_is_named_and_nothing_is_sealed(
    store: Store, tmp_path: Path, questions: list[Any], resolutions: list[Any], says: str
) -> None:
    folder = sets(tmp_path / "fb", questions, resolutions)
    with pytest.raises(MalformedInput) as error:
        import_questions(folder, "fb", store)
    assert says in str(error.value) and "2024-07-21" in str(error.value)
    assert list_questions(store) == []


@pytest.mark.parametrize(
    ("title", "background", "is_told"),
    [
        ("Will the bridge open? (Resolved YES)", "", True),
        ("Will the bridge open?", "Built in a year.\n\nThis question was resolved as Yes.", True),
        ("Will the bridge open?", "This market resolves YES if it does; else: resolves NO", False),
    ],
)
def test_a_question_that_tells_its_outcome_is_left_out_and_counted(
    store: Store, tmp_path: Path, caplog: Any, title: str, background: str, is_told: bool
) -> None:
    values = [gjo("Other?"), gjo(title, Description=background), gjo("Other?")]
    [seal] = import_questions(write(tmp_path / "gjo.json", values), "freshbench", store)
    assert seal.num_questions == 2 - is_told
    assert seal.manifest["left_out"] == ({"tells_outcome": 1} if is_told else {}) | {"repeated": 1}
    assert ("not imported: 1 tells_outcome (such as '" in caplog.text) == is_told
