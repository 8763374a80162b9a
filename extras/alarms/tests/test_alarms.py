"""The automations that send alarms; `tests/deployments/test_deploy.py` makes them on a server."""

import uuid

import pytest
from prefect.client.orchestration import get_client

from deployments.automations import PREFIX, fill_in, read_automations
from deployments.deploy import Deployer
from extras.alarms.alarms import ALARMS_YAML, make_alarms

MONTHLY = uuid.UUID(int=3)
BLOCK = uuid.UUID(int=4)


@pytest.mark.smoke
def test_alarms_have_the_ids_of_what_they_watch_and_of_their_webhook() -> None:
    alarms = fill_in(ALARMS_YAML, monthly=MONTHLY, block=BLOCK)
    shown = {each.name.removeprefix(PREFIX): each.model_dump_json() for each in alarms}
    assert sorted(shown) == [
        "a pool has no worker",
        "a run failed, crashed or is partial",
        "the monthly run is late",
    ]
    assert all(each.name.startswith(PREFIX) for each in alarms)
    assert not {each.name for each in alarms} & {each.name for each in read_automations([])}
    assert f'"prefect.deployment.{MONTHLY}"' in shown["the monthly run is late"]
    assert all(str(BLOCK) in each for each in shown.values())
    assert "$" not in "".join(shown.values())


@pytest.mark.usefixtures("prefect_api")
def test_a_server_without_a_webhook_has_no_alarms() -> None:
    with get_client(sync_client=True) as client:
        work = Deployer(client, dry_run=False)
        assert make_alarms(work, None, True, MONTHLY) == []
        assert make_alarms(work, None, False, MONTHLY) == []
    assert work.changes == []
