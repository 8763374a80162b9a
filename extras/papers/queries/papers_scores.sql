-- Whether any benchmark scores are loaded; the correlations take seconds.
select count(*) as num_scores
from papers.loaded_scores
