"""How rows are found and read: filters, words, orders and pages. Begin at ``reading.py``."""
