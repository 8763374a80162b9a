from typing import Any

import pytest

from core.plugins import import_parts
from core.settings import Settings
from extras.imported_results import demo


@pytest.mark.smoke
def test_the_demo_lands_what_ships(settings: Settings, peek: Any) -> None:
    assert demo in import_parts("demo")
    demo.land_for_demo(settings)
    counts = "select count(*) as num from internal.{}"
    assert peek(counts.format("published_rates")) == [{"num": 1636}]
    assert peek(counts.format("benchmark_scores")) == [{"num": 14}]
    assert peek("select cutoff is not null as is_known from models where model = 'llama-7b'") == [
        {"is_known": True}
    ]
