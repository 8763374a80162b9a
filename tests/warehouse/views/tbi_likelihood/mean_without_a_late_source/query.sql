from tbi_likelihood
where scope = 'all'
