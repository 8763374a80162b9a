"""Two nodes of Ray on loopback addresses; on a line of input, says what ran where, and ends.

A node claims to have a GPU: a slot, as far as Ray is concerned. The second has a CPU to spare, so
that two cells at a time would run on it if they did not want the GPU.
"""

from __future__ import annotations

import json
import sys

import ray
from ray.cluster_utils import Cluster

node = {"num_gpus": 1, "object_store_memory": 80 * 2**20}
cluster = Cluster()
# 127.0.0.1 would be replaced by this machine's address on the network.
cluster.add_node(node_ip_address="127.0.0.2", num_cpus=1, include_dashboard=False, **node)
cluster.add_node(node_ip_address="127.0.0.3", num_cpus=2, **node)
sys.stdout.write(f"{cluster.address}\n")
sys.stdout.flush()
if sys.stdin.readline():
    ray.init(cluster.address, log_to_driver=False)
    sys.stdout.write(f"{json.dumps(ray.timeline())}\n")
    sys.stdout.flush()
    ray.shutdown()
cluster.shutdown()
