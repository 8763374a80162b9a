"""Repair of a warehouse: advice about damaged databases, and making them from the cells."""
