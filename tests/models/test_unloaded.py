from typing import Any

import pytest

from core.errors import UnknownName
from core.settings import Settings
from models.unloaded import ONLY_COMPRESSORS, find_inaccessible


def test_models_that_the_hub_will_not_give_are_named(hub: Any) -> None:
    settings = Settings(sites=hub.sites, models=("control:zstd", "someone/absent"))
    (problem,) = find_inaccessible(None, settings)
    assert problem.startswith("someone/absent: not a folder here, and the hub has no such model")
    hub.web.requests.clear()
    assert find_inaccessible(["control:zstd"], settings) == []
    assert find_inaccessible(None, Settings()) == [ONLY_COMPRESSORS]
    assert hub.web.requests == []
    with pytest.raises(UnknownName):
        find_inaccessible(["nope"], settings)
