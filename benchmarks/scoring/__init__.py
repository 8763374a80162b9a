"""Benchmarks of scoring: models with random weights, and the compared scorers."""
