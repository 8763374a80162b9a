"""Instruments (losses, answers to questions, answers to puzzles), and their common loop."""
