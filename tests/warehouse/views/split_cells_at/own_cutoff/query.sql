-- Models without a cutoff are left out.
from internal.split_cells_at(cast(null as date));
