"""The simulated Wikimedia Commons."""

SITES = ("extras.media.simulator.commons",)
