"""How a release is cited: by an address and an author, if the settings have them."""

import datetime as dt
import json

import pytest
import yaml

from core.month import Month
from core.settings import Settings
from extras.releases.citation import citation_cff, cited, zenodo_json

DAY = dt.date(2024, 4, 5)
PAGE = "https://figures.example.org"


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({"report_url": PAGE, "contact": "https://me.example.org"}, PAGE),
        ({"contact": "https://me.example.org"}, "https://me.example.org"),
        ({"contact": "me@example.org"}, None),
        ({}, None),  # the page of the project is no page of the release
    ],
)
def test_the_address_is_that_of_the_report(given: dict[str, str], address: str | None) -> None:
    settings = Settings(home="unused", **given)
    release = cited(settings, Month("2024-03"), "ab" * 32, is_simulated=False)
    cff = yaml.safe_load(citation_cff(release, DAY))
    assert cff.get("url") == address
    assert (cff["version"], cff["date-released"], cff["type"]) == ("2024-03", DAY, "dataset")
    assert cff["identifiers"][0]["value"] == f"sha256:{'ab' * 32}"
    related = json.loads(zenodo_json(release)).get("related_identifiers", [])
    assert [each["identifier"] for each in related] == ([address] if address else [])


def test_author_and_simulation_are_stated() -> None:
    settings = Settings(home="unused", report_author='Ann "A" Éxample: B')
    release = cited(settings, Month("2024-03"), "ab" * 32, is_simulated=True)
    cff = yaml.safe_load(citation_cff(release, DAY))
    deposit = json.loads(zenodo_json(release))
    assert cff["authors"] == deposit["creators"] == [{"name": 'Ann "A" Éxample: B'}]
    assert "simulated text" in cff["title"] and deposit["title"] == cff["title"]
    assert "A program made up the text" in deposit["description"]
    # What Zenodo requires of a deposit of this type.
    assert deposit.keys() >= {
        "upload_type", "title", "description", "creators", "access_right", "license",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("author", "name"),
    [(None, "tidemark, (one name)"), ("Mila", "Mila, (one name)"), ("Ann Example", "Ann Example")],
)
def test_zenodo_finds_a_family_name(author: str | None, name: str) -> None:
    settings = Settings(home="unused", report_author=author)
    release = cited(settings, Month("2024-03"), "ab" * 32, is_simulated=False)
    assert json.loads(zenodo_json(release))["creators"] == [{"name": name}]
    assert yaml.safe_load(citation_cff(release, DAY))["authors"] == [{"name": author or "tidemark"}]
