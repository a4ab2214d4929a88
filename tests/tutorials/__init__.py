"""Sites that others teach to build, taken in as they are: what they have is not written for us.

The models, serializers, schemas and permissions are those of REST framework's tutorial on snippets
and of django-ninja's on employees.
"""
