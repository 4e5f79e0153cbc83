"""A cluster of two nodes on the loopback, in a process of its own, which is told what to do line by line.

Run as ``python -m tests.cluster.two_nodes CORES``. It says what it started, does what it is told, and ends
with its input: ``add`` starts another node, and says so in the same form.
"""

import json
import os
import sys

MEGABYTES = 1024 * 1024
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""For every process that has to do with the cluster: Ray listens on 127.0.0.1 alone, and tells nobody."""

WATCHFUL = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000}
"""A node that is gone is missed after some five seconds."""


def main() -> None:
    os.environ.update(LOOPBACK)
    from ray.cluster_utils import Cluster

    cores = int(sys.argv[1])
    cluster = Cluster()

    def add(**more: object) -> int:
        node = cluster.add_node(
            num_cpus=cores,
            include_dashboard=False,
            include_log_monitor=False,
            no_monitor=True,
            node_ip_address="127.0.0.1",
            object_store_memory=80 * MEGABYTES,
            **more,
        )
        (raylet,) = node.all_processes["raylet"]
        return raylet.process.pid

    try:
        head = add(_system_config=WATCHFUL)
        say({"raylets": [head, add()], "address": cluster.address})
        for line in sys.stdin:
            if line.strip() == "add":
                say({"raylets": [add()], "address": cluster.address})
    finally:
        cluster.shutdown()


def say(what: dict[str, object]) -> None:
    print(f"nodes {json.dumps(what)}", flush=True)


if __name__ == "__main__":
    main()
