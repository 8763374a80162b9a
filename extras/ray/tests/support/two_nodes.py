"""Two nodes of Ray on loopback; a line of input prints the node of each cell, and ends both.

Each node claims a GPU (a slot for Ray). The second has a spare CPU: cells that did not request
the GPU would run there two at a time.
"""

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
