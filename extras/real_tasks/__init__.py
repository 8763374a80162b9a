"""Real tasks: tasks that are made from the texts of each month, with options of the same month."""
