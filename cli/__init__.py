"""The command line, one module per group of commands. Only this package may import all others."""
