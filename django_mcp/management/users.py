"""Users, as operators name them."""

from __future__ import annotations

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.management.base import CommandError


def find_user(username: str) -> AbstractBaseUser:
    """Return the user of this name; raises ``CommandError``, with the cure, if there is none."""
    model = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(username)
    except model.DoesNotExist as error:
        raise CommandError(
            f'There is no user "{username}". Check the spelling, or create the user first, '
            'for instance with "manage.py createsuperuser".'
        ) from error
