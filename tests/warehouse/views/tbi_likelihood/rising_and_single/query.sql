from tbi_likelihood
where scope = 'source'
