"""A support desk whose tickets and articles are reachable through the Model Context Protocol."""
