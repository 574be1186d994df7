"""Arrays to arrays: repository, models, masks, sessions and the threads that run them."""
