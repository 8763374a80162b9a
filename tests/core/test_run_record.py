import datetime as dt
from pathlib import Path

import pytest

from core.errors import MalformedInput, StorageError
from core.month import Month
from core.run_record import Outcome, RunRecord, RunRequest, list_runs
from core.storage.store import Store

START = dt.datetime(2026, 11, 3, 3, tzinfo=dt.UTC)


def request(run: str = "monthly-1", **fields: object) -> RunRequest:
    usual = {"run": run, "started_at": START, "months": ("2026-09", "2026-10")}
    usual |= {"sources": ("arxiv", "govuk"), "models": ("control:zstd", "/models/a b")}
    usual |= {"protocol": "default"}
    return RunRequest.model_validate({**usual, **fields})


@pytest.fixture
def record(store: Store) -> RunRecord:
    record = RunRecord(store, "monthly-1")
    record.begin(request())
    return record


def test_a_run_that_goes_on_keeps_its_first_request(store: Store, record: RunRecord) -> None:
    assert RunRecord(store, "monthly-1").begin(request(sources=("arxiv",))) == request()
    assert record.request().window() == [Month("2026-09"), Month("2026-10")]


def test_restarts_are_counted(store: Store, record: RunRecord) -> None:
    assert [RunRecord(store, record.run).count_restart() for _ in range(3)] == [1, 2, 3]


def test_a_stage_ends_when_each_of_its_parts_has_ended(record: RunRecord) -> None:
    record.settle("crawl", "arxiv", Outcome(done=0, holes=("x: y",)))
    record.settle("crawl", "arxiv", Outcome(done=2))  # done again
    assert record.outcomes("crawl") == {"arxiv": Outcome(done=2)}
    assert record.missing("crawl") == ["govuk"]
    record.settle("crawl", "govuk", Outcome(done=1, holes=("crawl govuk 2026-10: gone",)))
    assert record.missing("crawl") == []


def test_a_result_sums_the_parts_and_what_has_not_ended_is_a_hole(record: RunRecord) -> None:
    record.settle("crawl", "arxiv", Outcome(done=2, partial=("arxiv 2026-10: 3 failed",)))
    record.settle("crawl", "govuk", Outcome(done=0, holes=("crawl govuk: no answer",)))
    record.settle("score", "/models/a b", Outcome(done=4))
    assert record.result() is None
    result = record.finish("/srv/report/index.html")
    assert (result.partitions, result.cells) == (2, 4)
    assert result.holes == ("crawl govuk: no answer", "score control:zstd: has not ended")
    assert result.partial == ("arxiv 2026-10: 3 failed",)
    assert record.result() == result


def test_runs_are_listed_the_newest_first(store: Store, record: RunRecord) -> None:
    later = START + dt.timedelta(days=1)
    RunRecord(store, "backfill/2").begin(request("backfill/2", started_at=later))
    assert [each.run for each in list_runs(store)] == ["backfill/2", "monthly-1"]


def test_a_run_that_is_not_there_or_not_ours_is_said_to_be_so(store: Store) -> None:
    with pytest.raises(StorageError, match="nobody"):
        RunRecord(store, "nobody").request()
    Path(store.root, "runs", "odd").mkdir(parents=True)
    Path(store.root, "runs", "odd", "request.json").write_text('{"run": "odd"}', encoding="utf-8")
    with pytest.raises(MalformedInput, match="started_at"):
        RunRecord(store, "odd").request()
