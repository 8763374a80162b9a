from bias_samples
where comparison = 'older half'
