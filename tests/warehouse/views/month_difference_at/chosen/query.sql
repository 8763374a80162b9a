-- Of c, nothing was asked. A month of other documents is left out.
from month_difference_at(['b', 'a']);
