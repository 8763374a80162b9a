"""The automations that mark runs as crashed or lost, with a silence that tests can wait for."""

import datetime as dt

from prefect.events.schemas.automations import AutomationCore, EventTrigger

from deployments.automations import PREFIX, read_automations

NO_HEARTBEAT, NEVER_BEGAN = f"{PREFIX}no heartbeat", f"{PREFIX}never began"


def silence_of(automation: AutomationCore) -> dt.timedelta:
    """Return the time without an event after which an automation acts."""
    assert isinstance(automation.trigger, EventTrigger)
    return automation.trigger.within


def automation_of(name: str, silence: dt.timedelta | None = None) -> AutomationCore:
    """Return the automation of a name, with its own silence or another."""
    [found] = [each for each in read_automations([]) if each.name == name]
    if silence is not None:
        assert isinstance(found.trigger, EventTrigger)
        found.trigger.within = silence
    return found
