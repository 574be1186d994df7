"""What a request costs, how long it waits, and how many replicas a load needs."""
