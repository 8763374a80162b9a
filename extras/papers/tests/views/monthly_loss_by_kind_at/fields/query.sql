select * replace (round(bits_per_byte_low, 5) as bits_per_byte_low)
from papers.monthly_loss_by_kind_at('papers');
