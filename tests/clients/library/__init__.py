"""A small Django app that has much to say to its readers, and much to ask."""
