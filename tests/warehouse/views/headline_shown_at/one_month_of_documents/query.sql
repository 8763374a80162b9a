from internal.headline_shown_at(null, null, 'new')
