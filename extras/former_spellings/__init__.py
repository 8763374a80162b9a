"""Former spellings of commands and options, which work for one release."""
