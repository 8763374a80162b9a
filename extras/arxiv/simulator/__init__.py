"""Simulated sites of arXiv."""

SITES = ("extras.arxiv.simulator.arxiv",)
