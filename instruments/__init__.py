"""Instruments: a loop over cells, and the parts of each instrument. No import of Prefect."""
