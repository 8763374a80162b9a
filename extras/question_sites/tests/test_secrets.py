"""The token of a site of questions is in nothing that a command writes, prints or starts."""

from pathlib import Path

from core.storage.store import Store
from extras.question_sites.simulator.metaculus import TOKEN
from tests.commands import web
from tests.crawlers.questions.scene import permit
from tests.flows.test_secrets import Watched, check_recordings, watched
from tests.tiers import needs_extra

__all__ = ["watched", "web"]


@needs_extra("recording")
def test_errors_and_recordings_show_no_secret(watched: Watched, home: Path, tmp_path: Path) -> None:
    permit(Store(str(home)), "metaculus")
    check_recordings(watched, "metaculus", {"TIDEMARK_TOKENS__METACULUS": TOKEN}, tmp_path)
