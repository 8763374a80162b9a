-- Pictures have months of a single cluster: no coefficients.
from internal.split_coefficients_at(date '2024-03-01');
