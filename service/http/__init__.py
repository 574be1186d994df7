"""Bytes and connections below the endpoints: bodies within bounds, errors, shutdown, departures."""
