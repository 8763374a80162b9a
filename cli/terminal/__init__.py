"""Tables and options of commands, and printing of results, errors and tables."""
