"""The wire: what a client sees, door by door, held against the specification."""
