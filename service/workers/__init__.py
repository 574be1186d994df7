"""Several processes that serve on one port, and the one that starts, counts and replaces them."""
