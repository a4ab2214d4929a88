"""Logins by django-oauth-toolkit: the settings of a site that has it, and its tests.

pytest --ds=tests.logins.settings tests/logins
"""
