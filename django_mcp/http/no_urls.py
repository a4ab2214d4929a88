"""The URLconf of a request that has its answer: no page of the site is looked for any more."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
