"""Simulated sites of sources that need a permission."""

SITES = ("extras.permission_sources.simulator.feeds",)
