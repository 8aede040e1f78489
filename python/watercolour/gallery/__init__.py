"""A run's page: paintings beside the curve, the code behind each, where the gain came from."""
