from internal.headline_figures_at(cast(null as date), cast(null as date), 'new')
