from tests.commands import *  # noqa: F403
