from internal.forecast_tbi_at('observed')
