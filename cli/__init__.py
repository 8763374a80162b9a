"""The command line: one file a noun. The only room that may know all others."""
