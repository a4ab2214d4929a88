"""The page at /, which says what is here and how to connect."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.urls import reverse
from django.views.generic import TemplateView

from example_project.support.clients import client_lines
from example_project.support.models import Article, Ticket


class LandingView(TemplateView):
    """The door sign."""

    template_name = "support/landing.html"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        endpoint = self.request.build_absolute_uri(reverse("django_mcp"))
        return super().get_context_data(
            **kwargs,
            endpoint=endpoint,
            clients=client_lines(endpoint),
            debug=settings.DEBUG,
            unfinished=Ticket.objects.unfinished().count(),
            articles=Article.objects.count(),
            paid=Ticket.objects.filter(status=Ticket.Status.OPEN, paid__gt=0).first(),
        )
