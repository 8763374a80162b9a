"""The writer's database: its file or lake, its lock, its objects and its statements."""
