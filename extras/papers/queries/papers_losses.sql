-- Bits per character by month, and their centred mean over three months.
-- smoothed: mean over the month and its two neighbours [bits per character]
-- model: model, as in view models
-- source: source of the text
-- month: first day of the month [date]
-- bits_per_char: loss of the month [bits per character]
select
    model,
    source,
    month,
    value as bits_per_char,
    smoothed
from papers.smoothed_curves_at(3)
where figure = 'bits_per_char' and protocol = $protocol
order by source, model, month
