"""A slot is asked of a server that never ends its answers, or asks for an hour."""

import pytest

from core.errors import SourceUnavailable
from extras.shared_sites.server_sites import hold_slot
from tasks.prefect import server
from tests.unfit_servers import Respond, ask_for_patience, drip, serving


@pytest.mark.parametrize("respond", [drip, ask_for_patience])
def test_a_slot_is_given_up(respond: Respond, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ANSWER_S", 0.2)
    monkeypatch.setattr(server, "LOOK_S", 0.01)
    with serving(respond) as address:
        monkeypatch.setenv("PREFECT_API_URL", address)
        with pytest.raises(SourceUnavailable, match="gives no slot"), hold_slot("some.example"):
            pytest.fail("it is not our turn")
