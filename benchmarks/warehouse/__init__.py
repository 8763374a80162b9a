"""Benchmarks of the warehouse: landing generated losses, and reading the views."""
