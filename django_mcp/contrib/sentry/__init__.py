"""Sentry: errors named after the call that they happened in, with its user, and without secrets.

``INSTALLED_APPS += ["django_mcp.contrib.sentry"]`` switches it on, wherever the site calls
``sentry_sdk.init``. ``call_scope`` says what is sent of a call, ``hiding`` what is not.
"""
