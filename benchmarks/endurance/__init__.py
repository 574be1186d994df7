"""What wears a server down: time, load, clients that leave, models that change, signals."""
