from headline_at(null, null)
