"""The REST API by which the bookkeeping fetches refunds, at `/api/refunds/`."""

from __future__ import annotations

from rest_framework import filters, permissions, serializers, viewsets
from rest_framework.pagination import PageNumberPagination

from example_project.support.models import Refund


class MayView(permissions.DjangoModelPermissions):
    """Those who may view refunds; the class itself asks for nothing where nothing is changed."""

    perms_map = {
        **permissions.DjangoModelPermissions.perms_map,
        "GET": ["%(app_label)s.view_%(model_name)s"],
    }


class Pages(PageNumberPagination):
    """Fifty at a time."""

    page_size = 50


class RefundSerializer(serializers.ModelSerializer):
    """A refund as the books have it."""

    customer = serializers.CharField(source="ticket.customer.name", read_only=True)

    class Meta:
        model = Refund
        fields = ["id", "ticket", "customer", "amount", "reason", "created"]


class RefundViewSet(viewsets.ReadOnlyModelViewSet):
    """Money that went back to customers, the last first."""

    queryset = Refund.objects.select_related("ticket__customer").order_by("-created", "-pk")
    serializer_class = RefundSerializer
    permission_classes = [MayView]
    pagination_class = Pages
    filter_backends = [filters.SearchFilter, filters.OrderingFilter]
    search_fields = ["ticket__subject", "ticket__customer__name", "reason"]
    ordering_fields = ["created", "amount"]
