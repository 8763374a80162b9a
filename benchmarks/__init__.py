"""Benchmarks: whole jobs measured side by side in one run, reported as ratios; never unit tests."""
