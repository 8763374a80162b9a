"""A takedown in a data root with a release, which must not have the document either."""

from collections.abc import Callable

import pytest

from core.month import Month
from core.settings import Settings
from extras.takedown.tests.test_takedown import (
    home,  # noqa: F401
    made,  # noqa: F401
    releases,  # noqa: F401
    test_an_item_is_forgotten_everywhere_in_all_its_versions,  # noqa: F401
    test_killed_anywhere_and_run_again_it_is_done,  # noqa: F401
)

release = pytest.importorskip("extras.releases.release")


@pytest.fixture(scope="module")
def make_release() -> Callable[[Settings, Month], object]:
    make: Callable[[Settings, Month], object] = release.make_release
    return make
