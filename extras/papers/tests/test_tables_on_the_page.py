"""Tables on the page of the papers' charts: bias of forecasts, likelihoods and probes."""

from pathlib import Path

import pytest

from core.settings import Settings
from reports.site.build import write_site
from tests.reports.site.pages import Page
from tests.warehouse.test_views import build

VIEWS = Path(__file__).parent / "views"


@pytest.mark.parametrize(
    ("view", "case", "figure", "told"),
    [
        ("forecast_tbi", "years", "papers-bias", "Neophilia"),
        ("scylla_likelihood", "five_items", "papers-likelihoods", "mixed-2-likelihood-5"),
        ("scylla_probes", "lines", "papers-probes", "crosses"),
    ],
)
def test_the_page_has_the_table(
    settings: Settings, view: str, case: str, figure: str, told: str
) -> None:
    build(VIEWS / view / case, settings)
    page = Page(Path(write_site(settings, only="papers")))
    assert figure in page.ids
    assert told in [cell.text for cell in page.cells]
