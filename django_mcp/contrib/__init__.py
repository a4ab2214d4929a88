"""Optional parts: sub-apps to be added to ``INSTALLED_APPS`` one by one."""
