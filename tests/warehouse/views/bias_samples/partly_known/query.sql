from internal.bias_samples
where comparison = 'older half'
