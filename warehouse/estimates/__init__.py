"""Estimates that are fitted at publication, where SQL is the wrong tool.

``panel.py`` has the estimator on arrays. ``estimate.py`` reads a snapshot's cells, fits, and writes
the tables ``panel_*`` of the same snapshot, which views read.
"""
