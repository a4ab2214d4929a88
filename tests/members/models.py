from __future__ import annotations

import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.db import models


class Member(AbstractBaseUser):
    """Has a key that is no number, and no groups and permissions."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    username = models.CharField(max_length=50, unique=True)
    is_active = models.BooleanField(default=True)

    objects = BaseUserManager()

    USERNAME_FIELD = "username"

    def __str__(self) -> str:
        return self.username


class Clerk(AbstractUser):
    """Has a key that is no number, and all else that Django's own users have."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
