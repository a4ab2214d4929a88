"""Sessions and requests in the Django ORM."""
