"""Tools made of a ``ModelAdmin``: what the admin shows and lets change, its callers' way.

Begin at ``admin_model.py``, which has all that can be done with the rows of one admin, and
``admin_tools.py``, which makes tools of it. ``django.contrib.admin`` is imported by these modules
alone, and these where a site offers an admin.
"""
