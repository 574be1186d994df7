"""Where a replica listens that is on a machine of its own."""

from ipaddress import ip_address

from ray.serve._private import replica
from ray.util import get_node_ip_address

EVERYWHERE = "[::]"


def keep_to_loopback() -> None:
    """On a node whose address is a loopback one, let nobody outside reach this replica.

    All that Ray opens keeps to the address of its node but for one port of each replica, which
    takes calls of other deployments on all interfaces and unpickles what comes (Ray 2.60). No
    option says otherwise (ray-project/ray, issue 64544). With another version of Ray that has no
    such function the replica does not start, which is better than to be open.
    """
    node = get_node_ip_address()
    if not ip_address(node).is_loopback:
        return
    listen = replica.add_port_to_grpc_server

    def listen_on_the_node(server: object, address: str) -> int:
        port: int = listen(server, address.replace(EVERYWHERE, node))
        return port

    replica.add_port_to_grpc_server = listen_on_the_node
