from tests.seals import *  # noqa: F403
