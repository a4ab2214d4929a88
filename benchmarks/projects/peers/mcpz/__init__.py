"""django-mcpz: a Django view without sessions."""
