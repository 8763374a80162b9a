"""The command line, one module per group of commands. Only it may import all other packages."""
