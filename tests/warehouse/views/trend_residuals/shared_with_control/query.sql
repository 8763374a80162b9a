from internal.trend_residuals
where model = 'm';
