"""One simulated world of ``benchmarks/statistics/board.py``."""

import pytest

from benchmarks.statistics.board import NUM_MODELS, draw_world, measure

pytestmark = pytest.mark.long


def test_the_better_model_has_the_older_cutoff() -> None:
    world = draw_world(0)
    by_level = sorted(world.levels, key=lambda name: world.levels[name])
    assert len(set(by_level)) == NUM_MODELS
    assert by_level == sorted(world.cutoffs, key=lambda name: world.cutoffs[name])
    assert world.losses.equals(draw_world(0).losses)
    assert not world.losses.equals(draw_world(1).losses)


def test_the_board_has_the_order_of_fresh_text() -> None:
    """Over all months, the same world has another order: the count can fail."""
    shares = measure(1)
    assert shares.worlds == shares.right == 1
    assert shares.right_over_all_months == 0
    assert shares.outside > shares.outside_wrong == 0
    assert shares.claimed_wrong == 0
