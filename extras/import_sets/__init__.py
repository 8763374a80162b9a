"""Import of published data sets of many files and months, and of files by address."""
