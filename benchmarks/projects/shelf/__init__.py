"""The app with the table that tools read."""
