"""Whether a GPU computes what it should, with which kernels, and how fast."""
