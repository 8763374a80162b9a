from trend_residuals
where model = 'm';
