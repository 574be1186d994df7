"""HTTP only: each endpoint reads a request, calls what is below, and writes a response."""
