"""Ray clusters of two nodes on loopback, and their processes."""

import contextlib
from pathlib import Path


@contextlib.contextmanager
def two_nodes(**head):
    """Yield a cluster and its second node; this process is connected to the first one."""
    import ray
    from ray.cluster_utils import Cluster

    found = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, **head})
    second = found.add_node(num_cpus=1)
    ray.init(address=found.address, log_to_driver=False)
    try:
        yield found, second
    finally:
        ray.shutdown()
        found.shutdown()


def running(start):
    """Return the processes of Ray's workers whose name begins so: the function, or the actor, that they run."""
    found = []
    for path in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if path.name.isdigit() and path.joinpath("cmdline").read_bytes().startswith(f"ray::{start}".encode()):
                found.append(int(path.name))
    return found
