"""The checks of ``make verify-demo`` on a small simulated world."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.statistics.panels import FIRST, Design, losses_of
from benchmarks.verify_demo import cutoff_finding, panel_findings
from core.settings import Settings
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish


@pytest.mark.long
def test_findings_follow_the_views(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = Settings(home=str(tmp_path_factory.mktemp("demo")))
    design = Design(gap=0.1, num_models=4)
    losses = losses_of(design, 0, (0, 0, 0))
    place = losses.schema.get_field_index("protocol")
    field, default = losses.schema.field("protocol"), np.full(losses.num_rows, "default")
    losses = losses.set_column(place, field, pa.array(default).cast(field.type))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses, "world")
        facts = [(FIRST + int(cutoff)).first_day for cutoff in design.cutoffs]
        warehouse.upsert_models(
            [{"name": f"model-0-{number}", "cutoff": day} for number, day in enumerate(facts)]
        )
    publish(settings)
    planted = FIRST + int(design.cutoffs[0])
    assert cutoff_finding(settings, "model-0-0", planted)[0]
    assert not cutoff_finding(settings, "model-0-0", planted + 6)[0]
    assert not cutoff_finding(settings, "model-0-0", planted + -6)[0]
    assert all(passed for passed, _ in panel_findings(settings, ["model-0-0", "model-0-1"]))
