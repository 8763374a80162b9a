from internal.headline_intervals_at(null, null, 'new')
