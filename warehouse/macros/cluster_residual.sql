-- The residual of a cluster of documents in bits, for the jackknife over the clusters of a cell.
-- Parameters: nll_nats and num_bytes of the cluster; cell_nats and cell_bytes, the sums over all
--   clusters. It is divided by (1 - the cluster's share of the bytes), as the figure is a ratio of
--   sums. NULL if one cluster has all bytes.
create or replace macro cluster_residual(nll_nats, num_bytes, cell_nats, cell_bytes) as
    (nll_nats - num_bytes * cell_nats / nullif(cell_bytes, 0)) / ln(2)
    / nullif(1 - num_bytes / nullif(cell_bytes, 0), 0);
