from cli.publish import find_target
from core.settings import Settings


def copy_snapshot(settings: Settings, target: str) -> bool:
    copy, place = find_target(target)
    return copy(settings, place)
