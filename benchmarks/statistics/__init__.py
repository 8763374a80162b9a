"""Statistics: check the coverage of 95 % intervals with simulated losses and answers."""
