"""Statistics: coverage of 95 % intervals in simulated worlds."""
