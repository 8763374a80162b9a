"""Simulated sites of these sources."""

SITES = (
    "extras.question_sites.simulator.kalshi",
    "extras.question_sites.simulator.metaculus",
    "extras.question_sites.simulator.polymarket",
)
