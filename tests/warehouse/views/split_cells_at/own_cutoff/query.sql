-- Models without a cutoff are left out.
from split_cells_at(cast(null as date));
