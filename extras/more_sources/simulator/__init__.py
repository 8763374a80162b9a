"""Simulated sites of these sources."""

SITES = (
    "extras.more_sources.simulator.biorxiv",
    "extras.more_sources.simulator.dumps",
    "extras.more_sources.simulator.edgar",
    "extras.more_sources.simulator.global_voices",
    "extras.more_sources.simulator.govuk",
    "extras.more_sources.simulator.stackexchange",
)
