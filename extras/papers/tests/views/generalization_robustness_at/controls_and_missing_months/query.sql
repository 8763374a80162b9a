from papers.generalization_robustness_at(date '2024-02-01')
