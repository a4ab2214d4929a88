"""The API of the snippets, in the three ways in which the tutorial writes it."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpResponse, JsonResponse
from rest_framework import generics, permissions, renderers, serializers, status, viewsets
from rest_framework.decorators import action, api_view, permission_classes
from rest_framework.pagination import PageNumberPagination
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from .models import Snippet


class TenAPage(PageNumberPagination):
    page_size = 10


class IsOwnerOrReadOnly(permissions.BasePermission):
    def has_object_permission(self, request, view, obj):
        return request.method in permissions.SAFE_METHODS or obj.owner == request.user


class SnippetSerializer(serializers.HyperlinkedModelSerializer):
    owner = serializers.ReadOnlyField(source="owner.username")
    highlight = serializers.HyperlinkedIdentityField(view_name="snippet-highlight", format="html")

    class Meta:
        model = Snippet
        fields = [
            *("url", "id", "highlight", "owner"),
            *("title", "code", "linenos", "language", "style"),
        ]


class UserSerializer(serializers.HyperlinkedModelSerializer):
    snippets = serializers.HyperlinkedRelatedField(
        many=True, view_name="snippet-detail", read_only=True
    )

    class Meta:
        model = User
        fields = ["url", "id", "username", "snippets"]


class UserViewSet(viewsets.ReadOnlyModelViewSet):
    """The people who have snippets."""

    queryset = User.objects.order_by("pk")
    serializer_class = UserSerializer
    pagination_class = TenAPage


class SnippetViewSet(viewsets.ModelViewSet):
    queryset = Snippet.objects.all()
    serializer_class = SnippetSerializer
    permission_classes = [permissions.IsAuthenticatedOrReadOnly, IsOwnerOrReadOnly]
    pagination_class = TenAPage

    @action(detail=True, renderer_classes=[renderers.StaticHTMLRenderer])
    def highlight(self, request, *args, **kwargs):
        return Response(self.get_object().highlighted)

    def perform_create(self, serializer):
        serializer.save(owner=self.request.user)


class SnippetList(generics.ListCreateAPIView):
    queryset = Snippet.objects.all()
    serializer_class = SnippetSerializer
    permission_classes = [permissions.IsAuthenticatedOrReadOnly]
    pagination_class = TenAPage

    def perform_create(self, serializer):
        serializer.save(owner=self.request.user)


class SnippetDetail(generics.RetrieveUpdateDestroyAPIView):
    queryset = Snippet.objects.all()
    serializer_class = SnippetSerializer
    permission_classes = [permissions.IsAuthenticatedOrReadOnly, IsOwnerOrReadOnly]


class SnippetHighlight(generics.GenericAPIView):
    queryset = Snippet.objects.all()
    renderer_classes = [renderers.StaticHTMLRenderer]

    def get(self, request, *args, **kwargs):
        return Response(self.get_object().highlighted)


class PlainSerializer(serializers.ModelSerializer):
    """As the tutorial begins, without links."""

    class Meta:
        model = Snippet
        fields = ["id", "title", "code", "linenos", "language", "style"]


@api_view(["GET"])
def api_root(request, format=None):
    """Say where things are."""
    return Response(
        {
            "users": reverse("user-list", request=request, format=format),
            "snippets": reverse("snippet-list", request=request, format=format),
        }
    )


@api_view(["GET", "POST"])
@permission_classes([permissions.IsAuthenticatedOrReadOnly])
def snippet_list(request, format=None):
    """List all snippets, or create a new one."""
    if request.method == "GET":
        return Response(PlainSerializer(Snippet.objects.all(), many=True).data)
    serializer = PlainSerializer(data=request.data)
    if serializer.is_valid():
        serializer.save(owner=request.user)
        return Response(serializer.data, status=status.HTTP_201_CREATED)
    return Response(serializer.errors, status=status.HTTP_400_BAD_REQUEST)


@api_view(["GET", "PUT", "DELETE"])
@permission_classes([permissions.IsAuthenticatedOrReadOnly])
def snippet_detail(request, pk, format=None):
    """Show, replace or delete a snippet."""
    try:
        snippet = Snippet.objects.get(pk=pk)
    except Snippet.DoesNotExist:
        return HttpResponse(status=404)
    if request.method == "GET":
        return JsonResponse(PlainSerializer(snippet).data)
    if request.method == "PUT":
        serializer = PlainSerializer(snippet, data=request.data)
        if serializer.is_valid():
            serializer.save()
            return Response(serializer.data)
        return Response(serializer.errors, status=status.HTTP_400_BAD_REQUEST)
    snippet.delete()
    return Response(status=status.HTTP_204_NO_CONTENT)


class SnippetStatistics(APIView):
    """Count the snippets of a language."""

    permission_classes = [permissions.IsAuthenticated]

    def get(self, request, language: str, format=None):
        wanted = Snippet.objects.filter(language=language)
        if owner := request.query_params.get("owner"):
            wanted = wanted.filter(owner__username=owner)
        return Response(wanted.count())
