-- How many months, blocks or models a figure needs. With fewer it is NULL, and its reason says so.
-- Grain: one row per figure and what is counted; figure is a view, or two.
-- Source: docs/cutoffs.md (Minima).
create or replace view minima as
select
    rows_of_minima.figure,
    rows_of_minima.counted,
    rows_of_minima.minimum
from (
    values
    ('train_test_gap', 'months with a figure on each side of the cutoff', 1),
    (
        'train_test_gap: interval', 'months with a figure on each side of the cutoff',
        minimum('months of a side')
    ),
    (
        'train_test_gap: interval', 'blocks of three months, of both sides',
        minimum('blocks of a gap')
    ),
    ('tbi_likelihood', 'months with a figure', minimum('months of a line')),
    ('tbi_likelihood: interval', 'months with a figure', minimum('months of a slope')),
    (
        'decay_by_horizon', 'months with a figure, right before the release',
        minimum('months of the base')
    ),
    ('decay_by_horizon', 'quarters after the release with all months', 1),
    (
        'decay_by_horizon: interval', 'quarters after the release with all months',
        minimum('quarters of a decay')
    ),
    (
        'intervals over documents',
        'other months of the source with an error, if a month has one document',
        minimum('months with an error')
    ),
    (
        'model_difference: interval', 'blocks of three calendar months of each source',
        minimum('blocks of a difference')
    ),
    (
        'headline: interval', 'blocks of three calendar months of each source',
        minimum('blocks of a difference')
    ),
    ('control_adjusted_gap', 'other models with another cutoff, on the same documents', 1),
    ('control_adjusted_gap', 'blocks of three months', minimum('blocks of a panel')),
    ('estimated_cutoff', 'months with a figure', minimum('months of a cutoff')),
    ('estimated_cutoff', 'months before the change', minimum('months before a cutoff')),
    ('estimated_cutoff', 'months after the change', minimum('months after a cutoff')),
    ('estimated_cutoff', 'other models, or compressors', 1),
    ('second_cutoff', 'months with a figure', minimum('months of two changes')),
    ('suspected_contamination', 'months with a figure', minimum('months of a cutoff')),
    (
        'suspected_contamination', 'months with a figure before the month, and after it',
        minimum('months of a side of a month')
    ),
    ('suspected_contamination', 'other models of known cutoff', 1),
    ('jump_origin', 'months with a figure', minimum('months of a jump')),
    ('age_in_parameters', 'sizes of a family', minimum('sizes of a family')),
    (
        'month_difficulty', 'models of known cutoff in the month', minimum('models of a difficulty')
    ),
    ('forecast_position_bias: interval', 'answers', minimum('answers of a mean')),
    ('forecast_position_bias: p-value on the site', 'answers', minimum('answers of a place')),
    ('forecast_calibration: interval', 'answers', minimum('answers of a mean')),
    (
        'forecast_bias_test',
        'right recent answers, from their expected number to the end of its range',
        minimum('right answers of a test')
    ),
    ('papers.forecast_tbi: interval', 'bins of 30 days', minimum('bins of a line')),
    (
        'internal.question_difficulty: interval', 'answers to the question',
        minimum('answers to a question')
    ),
    (
        'papers.scylla_divergence', 'items with likelihoods in each split',
        minimum('items of a split')
    )
) as rows_of_minima (figure, counted, minimum);
