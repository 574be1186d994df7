"""A cluster of Ray on this machine, told what to serve by lines of its standard input.

    python -m tests.deploy.ray.host 2

starts two nodes of one core each. A line is the path of a file for ``serve run``; it comes back
when Serve has taken it. The process ends with its input. It is the first of a namespace, whose
others end with it, sooner than Ray would end them.
"""

import subprocess
import sys
from typing import Final

STORE_BYTES: Final = 100 * 2**20


def main(nodes: int) -> None:
    """Start, and deploy."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(shutdown_at_exit=False)
    for _ in range(nodes):
        cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES, include_dashboard=False)
    for line in sys.stdin:
        deploy(cluster.address, line.strip())
        sys.stdout.write(line)
        sys.stdout.flush()


def deploy(address: str, config: str) -> None:
    """Serve what a file says, instead of what was served before."""
    command = [sys.executable, "-m", "ray.serve.scripts", "run", "--address", address]
    subprocess.run([*command, "--non-blocking", config], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]))
