import datetime as dt
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from core.errors import UsageError
from core.settings import Settings, load_settings
from reports.charts import Point, forecast_chart
from reports.forecasts import PAGE, write_forecasts
from warehouse.land.answers import land_imported_answers
from warehouse.read.publish import publish

HOSTILE = "<script>alert(1)</script>"
HEADER = "model,release_date,question_id,opened,closed,num_options,is_correct,p_correct\n"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("forecasts")
    lines = [HEADER]
    for number in range(60):
        day = dt.date(2021, 1, 1) + dt.timedelta(days=20 * number)
        is_right = number % 4 != 0
        lines.append(
            f"known,2023-06-01,q{number},{day},,2,{int(is_right)},{0.75 if is_right else 0.25}\n"
        )
        lines.append(f"{HOSTILE},,q{number},{day},,2,{number % 2},\n")
    (folder / "answers.csv").write_text("".join(lines))
    settings = Settings(home=str(folder / "home"))
    land_imported_answers(settings, folder / "answers.csv", "<b>made</b>")
    publish(settings)
    return settings


@pytest.mark.long
def test_the_figures_are_those_of_the_views(published: Settings) -> None:
    page = PAGE.render(published)
    # 45 of 60 are right; of the 15 that were opened after release, 12.
    for cell in ("60", "75.0 %", "15", "80.0 %"):
        assert f"<td>{cell}</td>" in page
    assert "<td>0.375 (" in page
    assert "Balanced (p = " in page


@pytest.mark.long
def test_scores_wait_for_outcomes(tmp_path: Path) -> None:
    header = HEADER.replace("p_correct", "chosen_option,probabilities")
    rows = "m,,q1,2022-01-05,,3,1,0,0.5|0.25|0.25\nm,,q2,2022-01-05,,3,0,0,0.5|0.25|0.25\n"
    (tmp_path / "answers.csv").write_text(header + rows)
    settings = Settings(home=str(tmp_path / "home"))
    land_imported_answers(settings, tmp_path / "answers.csv", "made")
    publish(settings)
    assert "<td>outcomes not known of 1</td>" in PAGE.render(settings)


def test_names_from_outside_are_text(published: Settings) -> None:
    page = PAGE.render(published)
    assert HOSTILE not in page and "<b>made</b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_browser_shows_every_chart_and_reaches_nothing(published: Settings) -> None:
    address = write_forecasts(published)
    assert address.endswith(PAGE.path)
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=load_settings().chromium, args=flags)
        window = browser.new_page(viewport={"width": 1280, "height": 900})
        asked: list[str] = []
        window.on("request", lambda request: asked.append(request.url))
        window.goto(Path(published.home, PAGE.path).resolve().as_uri())
        assert window.locator("figure svg").count() == 2
        assert window.evaluate("document.documentElement.scrollWidth") <= 1280
        assert window.locator("figure svg").first.locator("path[aria-hidden], path").count() > 13
        assert asked == [asked[0]]
        browser.close()


def test_nothing_answered_is_no_page(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    with pytest.raises(UsageError):
        write_forecasts(settings)
    assert not (tmp_path / "home" / "report").exists()


def test_a_chart_has_a_point_even_where_all_or_none_are_right() -> None:
    days = [dt.date(2023, month, 1) for month in (1, 4, 7)]
    shares = ((0, 0, 0.56), (1, 0.44, 1), (1 / 3, 0.06, 0.79))
    points = [Point(day, *share, 0.5) for day, share in zip(days, shares, strict=True)]
    window = (days[0], days[-1])
    svg = forecast_chart(points, window, dt.date(2023, 5, 1))
    assert svg.count("#d55e00") and svg.count("#0072b2")
    assert "NaN" not in svg
    assert "#d55e00" not in forecast_chart(points, window, None)
