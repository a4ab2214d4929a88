"""Sessions and requests in the Django ORM, behind the ports that the server declares."""
