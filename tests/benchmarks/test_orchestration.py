import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import ThreadingHTTPServer

import pyarrow as pa
import pytest
import requests

from benchmarks import __main__ as runner
from benchmarks.measure import Verdict
from benchmarks.orchestration import idle, stub_model
from benchmarks.orchestration import load as orchestration
from benchmarks.orchestration.memory import Memory
from benchmarks.orchestration.stub_model import DELAYED, losses_of
from core.cells.record import read_cell_record
from core.corpus.partition import read_documents, read_seal
from core.settings import Settings
from core.storage.store import Store
from instruments import losses
from instruments.losses import ScoringPlan, load_model, plan_scoring, write_losses
from instruments.models import ModelHolder
from models.catalogue import find_model
from tests.loopback import wait_for
from tests.tiers import needs_extra
from warehouse.land.cells import read_losses


class Meeting(stub_model.Stats):
    """Whoever comes first waits until four requests are there, on however busy a machine."""

    def __enter__(self) -> None:
        super().__enter__()
        wait_for(lambda: self.most_busy >= 4)


@contextmanager
def stub_of_four_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(stub_model._Handler, "names", ["stub"], raising=False)
    monkeypatch.setattr(stub_model._Handler, "stats", Meeting())
    with ThreadingHTTPServer(("127.0.0.1", 0), stub_model._Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs_extra("remote_scoring")
def test_cells_of_a_remote_model_are_scored_together(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is that of single requests: the stub's losses of each text."""
    monkeypatch.setattr(losses, "held", ModelHolder())
    with stub_of_four_at_once(monkeypatch) as address:
        orchestration._make_home(store.root, ["stub"], address, num_months=2)
        plan = plan_scoring("stub", ["default"], None, None, settings)
        assert (len(plan.groups), plan.in_flight(settings)) == (12, 10)
        load_model(plan, settings)
        assert requests.get(f"{address}/stats", timeout=300).json()["answers"] == 0
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda cells: write_losses(cells, plan.entry, settings), plan.groups))
        stats = requests.get(f"{address}/stats", timeout=300).json()
    assert stats["answers"] == 12
    assert 4 <= stats["most_busy"] <= 8
    tokenizer = orchestration.make_tokenizer()
    for cell in plan.pending:
        [row] = read_losses(store, cell).to_pylist()
        seal = read_seal(store, cell.partition)
        assert seal is not None
        [text] = pa.Table.from_batches(read_documents(store, seal))["text"].to_pylist()
        prompt = [tokenizer.eos_token_id, *tokenizer(text)["input_ids"]]
        assert row["nll_nats"] == pytest.approx(sum(losses_of(prompt)))
        assert row["num_tokens"] + 1 == len(prompt)
        assert len(prompt) in DELAYED
        record = read_cell_record(store, cell)
        assert record is not None and record.num_tokens_read == row["num_tokens"]


def test_a_setting_says_how_many_cells_are_under_way(settings: Settings) -> None:
    entry = find_model("control:zstd", settings)
    plan = ScoringPlan(entry, cells=(), pending=())
    assert plan.in_flight(settings) == 2
    assert plan.in_flight(settings.model_copy(update={"in_flight": 5})) == 5


def test_the_runner_fails_where_a_condition_does_not_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [Verdict("one", {"cells": "7"}, {"7 of 7": True})]
    monkeypatch.setattr(orchestration, "run", lambda rounds, cells: verdicts)
    assert runner.main(["orchestration"]) == 0
    verdicts.append(Verdict("two", {"cells": "6"}, {"6 of 7": False, "8 in flight": True}))
    assert runner.main(["orchestration"]) == 1
    printed = capsys.readouterr().out
    assert "| cells | 6 |" in printed
    assert "- **does not hold**: 6 of 7\n- holds: 8 in flight" in printed


@pytest.mark.slow
def test_an_idle_month_has_no_crawls_and_no_report() -> None:
    [verdict] = idle.run(rounds=1, texts=1)
    parts = verdict.rows["idle: flow runs until they ended"]
    assert [part.split()[0] for part in parts.split(", ")] == ["monthly", "score", "score"]
    assert verdict.rows["idle: flow runs until they started"].count("score control:") == 2


def test_growth_is_of_the_last_half() -> None:
    flat = [(float(second), 100 * 2**20) for second in range(10, 20)]
    rising = [(float(second), (100 + second) * 2**20) for second in range(10)]
    assert Memory((*rising, *flat), 1.0).growth == pytest.approx(0.0, abs=1e-6)
    steady = tuple((float(second), (second + 1) * 2**20) for second in range(20))
    assert Memory(steady, 1.0).growth == pytest.approx(9 / 15.5)
