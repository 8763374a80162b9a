"""Benchmarks: whole jobs measured side by side in one run, as ratios; never unit tests."""
