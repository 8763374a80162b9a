from forecast_tbi_at('observed')
