from headline_shown_at(null, null, 'new')
