from tests.commands import *  # noqa: F403
from tests.seals import *  # noqa: F403
