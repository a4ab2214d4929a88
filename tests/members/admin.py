from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin

from .models import Clerk

admin.site.register(Clerk, UserAdmin)
