"""The official clients as peers."""
