"""A constant, and one row by its key."""

from __future__ import annotations

import json

from django.http import HttpRequest, HttpResponse
from django.urls import path
from shelf.models import Item


def constant(request: HttpRequest) -> HttpResponse:
    """Answer the same to everything."""
    return HttpResponse(b'{"value": 4242424242}', content_type="application/json")


def select(request: HttpRequest) -> HttpResponse:
    """Answer with the row that the body names."""
    key = json.loads(request.body)["params"]["arguments"]["key"]
    item = Item.objects.get(pk=key)
    return HttpResponse(json.dumps({"value": item.value}), content_type="application/json")


urlpatterns = [path("mcp", constant), path("select", select)]
