from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import DefaultRouter

from django_mcp import endpoint

from .employees.api import api
from .employees.tools import server as employees
from .snippets.api import SnippetViewSet, UserViewSet
from .snippets.tools import server as snippets

router = DefaultRouter()
router.register("snippets", SnippetViewSet, basename="snippet")
router.register("users", UserViewSet, basename="user")

urlpatterns = [
    path("", include(router.urls)),
    path("api/", api.urls),
    endpoint("snippets/mcp", server=snippets, auth="django_mcp.auth.django_user"),
    endpoint("employees/mcp", server=employees, auth="django_mcp.auth.django_user"),
]
