"""What of a row may be read.

``row_fields.py`` has the one list of fields that governs the rest; begin there.
"""
