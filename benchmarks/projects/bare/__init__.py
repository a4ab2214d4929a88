"""What there is beneath everybody: a view that does nothing, and one that reads a row."""
