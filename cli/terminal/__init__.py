"""What the commands share: options, printing of results and errors, tables."""
