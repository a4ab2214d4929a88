"""The wire: what a client sees, entrance by entrance, held against the specification."""
