"""Wrong answers to crawlers of this extra: the check of ``tests/crawlers``."""

from extras.more_sources import global_voices
from extras.more_sources.simulator import global_voices as global_voices_site
from tests.crawlers.test_mutated_answers import WORLD, check_answers


def test_no_answer_of_global_voices_ends_in_anything_else() -> None:
    check_answers(global_voices, {"global_voices": global_voices_site.Site(WORLD)})
