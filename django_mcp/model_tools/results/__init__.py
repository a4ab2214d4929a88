"""Rows as functions of the site return them: some fields of each, and a page of them at a time.

Begin at ``shown_fields.py`` and ``pages.py``.
"""
