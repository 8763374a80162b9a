"""Benchmarks: compare the run time of whole jobs within one process, as ratios."""
