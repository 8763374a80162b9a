import json
from typing import Any

import pytest

from core.cells.losses import Cell
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from extras.prefect_display import artifacts
from tests.unfit_servers import Respond, ask_for_patience, drip, refuse_its_size, serving


@pytest.mark.smoke
def test_a_table_that_does_not_fit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(artifacts, "create_table_artifact", lambda *a, **k: sent.append((a[0], k)))
    monkeypatch.setattr(artifacts, "_read_figures", lambda *_: {})
    settings = Settings(home="nowhere")
    month = Partition("news", Month("2024-01"))
    cells = [Cell("gpt2", "r", month, f"{n:064}", "default", "s") for n in range(1234)]
    for limit, num_shown in ((artifacts.MAX_BYTES, 300), (1000, None)):
        monkeypatch.setattr(artifacts, "MAX_BYTES", limit)
        artifacts.show_cells("gpt2", cells, settings)
        rows, said = sent.pop()
        assert len(rows) == num_shown or (num_shown is None and 0 < len(rows) < 300)
        assert len(json.dumps(rows)) <= limit + 2 * len(rows) + 2
        assert said["description"] == (
            f"1,234 cells of gpt2. {1234 - len(rows):,} more did not fit, and are not shown. "
            "All are in the warehouse: `tidemark sql 'from monthly_loss'`."
        )


# A run would send it; Prefect's client sends it alike.
@pytest.mark.filterwarnings("ignore:Artifact creation outside of a flow:FutureWarning")
@pytest.mark.parametrize(
    ("respond", "told"),
    [
        (drip, "TimeoutError: no whole answer in 0.3 s"),
        (ask_for_patience, "TimeoutError: no whole answer in 0.3 s"),
        (refuse_its_size, "413"),
    ],
)
def test_an_artifact_that_cannot_be_sent_stops_no_run(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    respond: Respond,
    told: str,
) -> None:
    if respond is not refuse_its_size:
        monkeypatch.setattr(artifacts, "SEND_S", 0.3)
    month = Partition("news", Month("2024-01"))
    cells = [Cell("gpt2", "r", month, "0" * 64, "default", "s")]
    with serving(respond):
        artifacts.show_cells("gpt2", cells, settings)
    assert "the table of cells of gpt2 is not shown on the Prefect server" in caplog.text
    assert told in caplog.text
