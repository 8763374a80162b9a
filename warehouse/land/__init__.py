"""Landing: insert cells and files of users into the database, in transactions."""
