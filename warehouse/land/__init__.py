"""Landing: write cells and users' files into the database, each in one transaction."""
