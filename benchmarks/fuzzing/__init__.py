"""Fuzzing of all sources: mutated responses must end in items or in errors of tidemark."""
