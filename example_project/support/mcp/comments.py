"""Tools that are made of an admin: what has been said, for those who may see it there."""

from __future__ import annotations

from django_mcp import mcp
from example_project.support.admin import CommentAdmin

mcp.admin(CommentAdmin)
