"""django-mcp-server: the official SDK of 2025 in a Django REST Framework view."""
