"""REST framework's viewsets and generic views as tools: the view is called."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, ClassVar

import django_filters
import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.cache import cache
from django.utils.translation import override
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import (
    decorators,
    filters,
    generics,
    pagination,
    permissions,
    serializers,
    throttling,
    versioning,
    viewsets,
)
from rest_framework.response import Response

from django_mcp import MCPServer, RegistrationError
from django_mcp.server.api_requests import MAX_ROWS, as_json_schema
from tests.server.support import REVISIONS, client_of

pytestmark = pytest.mark.django_db


class GroupSerializer(serializers.ModelSerializer):
    password = serializers.CharField(write_only=True, required=False)
    members = serializers.IntegerField(source="user_set.count", read_only=True)
    kind = serializers.ChoiceField(choices=["team", "club"], required=False, help_text="Which.")

    class Meta:
        model = Group
        fields = ["id", "name", "password", "members", "kind"]

    def create(self, validated_data: dict[str, Any]) -> Group:
        return Group.objects.create(name=validated_data["name"])

    def update(self, instance: Group, validated_data: dict[str, Any]) -> Group:
        seen.append(validated_data)
        instance.name = validated_data.get("name", instance.name)
        instance.save()
        return instance

    def to_representation(self, instance: Group) -> Any:
        return {"id": instance.pk, "name": instance.name, "members": instance.user_set.count()}

    def validate_name(self, name: str) -> str:
        if name == "root":
            raise serializers.ValidationError("Not this one.")
        return name


class NewName(serializers.Serializer):
    name = serializers.CharField(max_length=20, help_text="The new one.")


class IsNotLocked(permissions.BasePermission):
    message = "It is locked."

    def has_object_permission(self, request: Any, view: Any, group: Group) -> bool:
        return group.name != "locked"


class Pages(pagination.PageNumberPagination):
    page_size = 2
    page_size_query_param = "size"


seen: list[Any] = []


class Groups(viewsets.ModelViewSet):
    queryset = Group.objects.order_by("name")
    serializer_class = GroupSerializer
    permission_classes: ClassVar = [permissions.IsAuthenticated, IsNotLocked]
    filter_backends: ClassVar = [filters.SearchFilter, filters.OrderingFilter]
    search_fields: ClassVar = ["name"]
    pagination_class = Pages

    def get_queryset(self) -> Any:
        return super().get_queryset().exclude(name="hidden")

    def perform_create(self, serializer: Any) -> None:
        seen.append(
            (str(self.request.user), self.request.get_host(), self.request.META["REMOTE_ADDR"])
        )
        serializer.save()

    @decorators.action(detail=True, methods=["post"], serializer_class=NewName)
    def rename(self, request: Any, pk: str) -> Response:
        """Give a group another name."""
        group = self.get_object()
        given = self.get_serializer(data=request.data)
        given.is_valid(raise_exception=True)
        group.name = given.validated_data["name"]
        group.save()
        return Response({"renamed": group.name})

    @decorators.action(detail=False, methods=["get"])
    def count(self, request: Any) -> Response:
        return Response(self.get_queryset().count())


ACTIONS = ["list", "retrieve", "create", "update", "destroy", "rename", "count"]


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    seen.clear()


@pytest.fixture
def anna() -> User:
    return User.objects.create(username="anna")


def serve(kind: Any = Groups, actions: Any = ACTIONS, **options: Any) -> MCPServer:
    server = MCPServer("test")
    server.viewset(kind, actions=actions, **options)
    return server


@pytest.fixture
def client(anna) -> Any:
    return client_of(serve()).as_user(anna)


def groups(*names: str) -> list[Group]:
    return [Group.objects.create(name=name) for name in names]


def test_each_action_is_a_tool(client):
    tools = {tool["name"]: tool for tool in client.list_tools()}
    assert [*tools] == [
        "count_group",
        "create_group",
        "delete_group",
        "get_group",
        "list_groups",
        "rename_group",
        "update_group",
    ]
    hints = {name: tool["annotations"] for name, tool in tools.items()}
    assert hints["list_groups"] == {"readOnlyHint": True, "destructiveHint": False}
    assert hints["delete_group"] == {"readOnlyHint": False, "destructiveHint": True}
    assert tools["rename_group"]["description"] == "Give a group another name."
    assert tools["list_groups"]["description"] == "List groups, a page at a time."


def test_names_of_tools_are_the_same_in_every_language():
    server = MCPServer("test")
    with override("de"):  # in which a group is a Gruppe
        server.viewset(Groups, actions=["list", "retrieve"])
    assert [tool.key for tool in server.tools] == ["get_group", "list_groups"]


def test_filters_paginator_and_serializer_describe_the_arguments(client):
    schemas = {tool["name"]: tool["inputSchema"] for tool in client.list_tools()}
    assert {*schemas["list_groups"]["properties"]} == {"page", "size", "search", "ordering"}
    assert schemas["list_groups"]["properties"]["page"]["type"] == "integer"
    assert schemas["get_group"]["properties"] == {"id": {"type": "integer"}}
    create = schemas["create_group"]
    assert {*create["properties"]} == {"name", "password", "kind"}
    assert create["required"] == ["name"]
    assert create["properties"]["kind"]["enum"] == ["team", "club"]
    assert create["properties"]["kind"]["description"] == "Which."
    assert create["properties"]["name"]["maxLength"] == 150
    assert schemas["update_group"]["required"] == ["id"]
    assert {*schemas["rename_group"]["required"]} == {"id", "name"}


@pytest.mark.parametrize("revision", REVISIONS)
def test_lists_have_pages_that_the_model_can_turn(revision, anna):
    groups("a", "b", "c", "hidden")
    client = client_of(serve(), revision).as_user(anna)
    first = client.tool("list_groups").assert_ok().text
    page = json.loads(first)
    assert [each["name"] for each in page["results"]] == ["a", "b"]
    assert page["count"] == 3
    assert page["next"] == {"page": "2"}
    last = json.loads(client.tool("list_groups", **page["next"]).assert_ok().text)
    assert [each["name"] for each in last["results"]] == ["c"]
    assert last["next"] is None
    assert json.loads(client.tool("list_groups", **last["previous"]).text) == page


class ByPrefixes(filters.BaseFilterBackend):
    def get_schema_operation_parameters(self, view: Any) -> Any:
        schema = {"type": "array", "items": {"type": "string"}}
        return [{"name": "prefix", "required": False, "in": "query", "schema": schema}]

    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        return queryset.filter(name__regex="|".join(request.query_params.getlist("prefix")))


class Prefixed(Groups):
    filter_backends: ClassVar = [ByPrefixes]


@pytest.mark.parametrize("prefixes", [["a"], ["a", "b"]])
def test_the_next_page_has_all_values_of_a_list(anna, prefixes):
    groups("a1", "a2", "a3", "b1", "c1")
    client = client_of(serve(Prefixed, ["list"])).as_user(anna)
    first = client.tool("list_groups", prefix=prefixes).structured
    assert first["next"] == {"page": "2", "prefix": prefixes}
    last = client.tool("list_groups", **first["next"]).structured
    assert [each["name"] for each in last["results"]] == ["a3", "b1"][: len(prefixes)]
    assert last["previous"] == {"prefix": prefixes}


def test_filters_filter(client):
    groups("clerks", "cooks", "guards")
    page = client.tool("list_groups", search="c", ordering="-name").structured
    assert [each["name"] for each in page["results"]] == ["cooks", "clerks"]
    client.tool("list_groups", sort="x").assert_failed("sort: unknown argument")
    client.tool("list_groups", page=9).assert_failed("Invalid page.")


def test_what_the_view_does_not_show_is_not_there(client):
    (hidden,) = groups("hidden")
    for name, more in (("get", {}), ("update", {"name": "x"}), ("delete", {})):
        client.tool(f"{name}_group", id=hidden.pk, **more).assert_failed("No Group matches")
    hidden.refresh_from_db()
    assert hidden.name == "hidden"


def test_objects_are_created_as_by_the_api(client):
    created = client.tool("create_group", name="clerks", password="x").assert_ok().structured
    assert created == {"id": Group.objects.get().pk, "name": "clerks", "members": 0}
    assert seen == [("anna", "testserver", "127.0.0.1")]


def test_what_is_not_given_stays_as_it_is(client):
    (group,) = groups("clerks")
    client.tool("update_group", id=group.pk, kind="club").assert_ok()
    client.tool("update_group", id=group.pk, name="cooks").assert_ok()
    assert seen == [{"kind": "club"}, {"name": "cooks"}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "root"}, "name: Not this one."),
        ({"name": ""}, "name: This field may not be blank."),
        ({"name": "x", "kind": "sect"}, 'kind: "sect" is not a valid choice.'),
        ({"name": {"a": 1}}, "name: Not a valid string."),
        ({}, "name: this argument is required"),
        ({"name": "x", "id": 7}, "id: unknown argument"),
        ({"name": "x", "members": 7}, "members: unknown argument"),
    ],
)
def test_what_the_serializer_refuses_is_told_by_field(given, said, client):
    client.tool("create_group", **given).assert_failed(said)
    assert not Group.objects.exists()


def test_objects_are_deleted(client):
    (group,) = groups("clerks")
    client.tool("delete_group", id=group.pk).assert_ok()
    assert not Group.objects.exists()


def test_actions_of_the_sites_own(client):
    (group,) = groups("clerks")
    client.tool("rename_group", id=group.pk, name="cooks").assert_structured({"renamed": "cooks"})
    client.tool("rename_group", id=group.pk, name="x" * 30).assert_failed("name: Ensure this")
    client.tool("count_group").assert_structured({"result": 1})


def test_permissions_of_objects_refuse(client):
    (locked,) = groups("locked")
    client.tool("rename_group", id=locked.pk, name="open").assert_failed("It is locked.")
    client.tool("get_group", id=locked.pk).assert_failed("It is locked.")
    locked.refresh_from_db()
    assert locked.name == "locked"


class ForStaff(Groups):
    def get_permissions(self) -> Any:
        is_reading = self.action in ("list", "retrieve")
        return [permissions.AllowAny() if is_reading else permissions.IsAdminUser()]


def test_who_may_not_call_a_view_does_not_see_its_tool(anna):
    server = serve(ForStaff)
    client = client_of(server)
    for user in (AnonymousUser(), anna):
        names = [each["name"] for each in client.as_user(user).list_tools()]
        assert names == ["get_group", "list_groups"]
        client.as_user(user).tool("create_group", name="x").assert_error(-32602, "Unknown tool")
    anna.is_staff = True
    assert len(client.as_user(anna).list_tools()) == 7


class LooksAtTheAddress(permissions.BasePermission):
    def has_permission(self, request: Any, view: Any) -> bool:
        return bool(request.META["REMOTE_ADDR"])


class Addressed(Groups):
    permission_classes: ClassVar = [LooksAtTheAddress]


def test_a_permission_that_needs_a_request_hides_its_own_tool_alone(anna, caplog):
    server = serve(Addressed, ["count"])
    server.tool(name="other")(lambda: "there")
    client = client_of(server).as_user(anna)
    assert [each["name"] for each in client.list_tools()] == ["other"]
    assert "Say by permission= who does" in caplog.text
    client = client_of(serve(Addressed, ["count"], permission=lambda user: True)).as_user(anna)
    client.tool("count_group").assert_ok()


def test_the_view_refuses_also_whom_the_site_shows_its_tool(anna):
    client = client_of(serve(ForStaff, permission=lambda user: True)).as_user(anna)
    assert len(client.list_tools()) == 7
    client.tool("create_group", name="x").assert_failed("You do not have permission")
    assert not Group.objects.exists()


class ByName(Groups):
    lookup_field = "name"


def test_a_field_by_which_objects_are_found_is_one_argument_and_stays_as_it_is(anna):
    server = MCPServer("by name")
    server.viewset(ByName, actions=["retrieve", "update", "rename"])
    client = client_of(server).as_user(anna)
    Group.objects.create(name="editors")

    answer = client.tool("update_group", name="editors", kind="team")

    assert seen.pop() == {"name": "editors", "kind": "team"}
    assert json.loads(answer.assert_ok().text)["name"] == "editors"
    (update,) = (tool for tool in client.list_tools() if tool["name"] == "update_group")
    assert update["inputSchema"]["required"] == ["name"]


def test_what_a_url_could_hold_and_postgresql_does_not_take_is_told(anna):
    server = MCPServer("by name")
    server.viewset(ByName, actions=["retrieve", "update", "destroy"])
    client = client_of(server).as_user(anna)
    for tool in ("get_group", "update_group", "delete_group"):
        client.tool(tool, name="a\x00b").assert_failed("name: a text without NUL.")


class Slowly(throttling.UserRateThrottle):
    rate = "2/day"
    scope = "slowly"


class Throttled(Groups):
    throttle_classes: ClassVar = [Slowly]


def test_throttles_count(anna):
    cache.clear()
    client = client_of(serve(Throttled, ["count"])).as_user(anna)
    for _ in range(2):
        client.tool("count_group").assert_ok()
    client.tool("count_group").assert_failed("Request was throttled.")
    cache.clear()


class Versioned(viewsets.ReadOnlyModelViewSet):
    queryset = Group.objects.order_by("pk")
    serializer_class = GroupSerializer
    versioning_class = versioning.URLPathVersioning
    lookup_field = "name"
    pagination_class = None

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """Show what was asked for."""
        return Response({"version": request.version, **kwargs, **request.query_params})


def test_what_the_url_would_say_comes_from_the_site():
    server = serve(Versioned, ["retrieve"], kwargs={"version": "v2"}, name="team")
    client = client_of(server)
    (tool,) = client.list_tools()
    assert tool["name"] == "get_team"
    assert tool["inputSchema"]["properties"] == {"name": {"type": "string"}}
    said = client.tool("get_team", name="clerks").structured
    assert said == {"version": "v2", "name": "clerks"}


def test_a_list_without_pages_is_refused_where_it_is_long():
    client = client_of(serve(Versioned, ["list"], kwargs={"version": "v1"}))
    assert client.tool("list_groups").structured == {"results": []}
    Group.objects.bulk_create(Group(name=f"g{number}") for number in range(MAX_ROWS + 1))
    client.tool("list_groups").assert_failed("give it a pagination_class")


class GroupList(generics.ListCreateAPIView):
    queryset = Group.objects.order_by("pk")
    serializer_class = GroupSerializer
    pagination_class = Pages


class GroupDetail(generics.RetrieveUpdateDestroyAPIView):
    queryset = Group.objects.order_by("pk")
    serializer_class = GroupSerializer


def test_generic_views_are_taken_by_their_methods():
    server = serve(GroupList, ["get", "post"])
    server.viewset(GroupDetail, actions=["get", "patch", "delete"])
    client = client_of(server)
    names = [each["name"] for each in client.list_tools()]
    assert names == ["create_group", "delete_group", "get_group", "list_groups", "update_group"]
    made = client.tool("create_group", name="clerks").structured["id"]
    client.tool("update_group", id=made, name="cooks").assert_ok()
    assert client.tool("get_group", id=made).structured["name"] == "cooks"
    assert client.tool("list_groups").structured["count"] == 1
    client.tool("delete_group", id=made).assert_ok()
    assert client.tool("list_groups").structured["count"] == 0


class Crashing(Groups):
    def list(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        Group.objects.create(name="half")
        raise ZeroDivisionError


class GroupFilter(django_filters.FilterSet):
    name = django_filters.MultipleChoiceFilter(choices=[("a", "A"), ("b", "B")], help_text="Which.")
    pk_range = django_filters.RangeFilter(field_name="pk")
    pk__in = django_filters.BaseInFilter(field_name="pk")
    has_members = django_filters.BooleanFilter(
        field_name="user", lookup_expr="isnull", exclude=True
    )
    user = django_filters.ModelChoiceFilter(queryset=User.objects.all())


class Filtered(Groups):
    filter_backends: ClassVar = [DjangoFilterBackend]
    filterset_class = GroupFilter


class FilteredByFields(Groups):
    filter_backends: ClassVar = [DjangoFilterBackend]
    filterset_fields: ClassVar = {"name": ["exact", "startswith"]}


def test_filters_of_django_filter_are_arguments(anna):
    client = client_of(serve(Filtered, ["list"])).as_user(anna)
    (tool,) = client.list_tools()
    taken = {**tool["inputSchema"]["properties"]}
    assert taken.pop("name") == {
        "type": "array",
        "items": {"type": "string", "enum": ["a", "b"]},
        "description": "Which.",
    }
    assert taken == {
        "pk_range_min": {"type": "number"},
        "pk_range_max": {"type": "number"},
        "pk__in": taken["pk__in"],
        "has_members": {"type": "boolean"},
        "user": {"type": "string"},
        "page": taken["page"],
        "size": taken["size"],
    }
    assert taken["pk__in"]["type"] == "string"
    a, b, _ = groups("a", "b", "c")
    a.user_set.add(anna)

    def found(**given: Any) -> list[str]:
        page = client.tool("list_groups", size=9, **given).assert_ok().structured
        return [each["name"] for each in page["results"]]

    assert found(name=["a", "b"]) == ["a", "b"]
    assert found(pk_range_min=b.pk, pk_range_max=b.pk) == ["b"]
    assert found(pk__in=f"{a.pk},{b.pk}") == ["a", "b"]
    assert found(has_members=True) == ["a"]
    assert found(has_members=False) == ["b", "c"]
    assert found(user=str(anna.pk)) == ["a"]
    client.tool("list_groups", name=["z"]).assert_failed("name: ")
    client.tool("list_groups", sort="a").assert_failed("sort: unknown argument")


def test_filters_by_fields_are_arguments(anna):
    groups("cooks", "guards")
    client = client_of(serve(FilteredByFields, ["list"])).as_user(anna)
    page = client.tool("list_groups", name__startswith="g").structured
    assert [each["name"] for each in page["results"]] == ["guards"]


def test_a_crash_is_one_of_the_tool_and_rolled_back(anna):
    client = client_of(serve(Crashing, ["list"])).as_user(anna)
    client.tool("list_groups").assert_failed("The tool failed. (reference")
    assert not Group.objects.exists()


def test_the_sites_class_stays_as_it_is():
    before = {name: deepcopy(value) for name, value in vars(Groups).items() if name != "queryset"}
    serve()
    after = {name: value for name, value in vars(Groups).items() if name != "queryset"}
    # What REST framework itself sets, whenever a viewset becomes a view.
    own = {"name", "description", "suffix", "detail", "basename"}
    assert after.keys() - before.keys() <= own
    assert before["permission_classes"] == after["permission_classes"]


@pytest.mark.parametrize(
    ("kind", "actions", "cure"),
    [
        (Groups, ["lst"], "It has: list, retrieve, create, update, destroy, count, rename"),
        (GroupList, ["delete"], "It has: get, post"),
        (GroupSerializer, ["list"], "Write a function that calls it"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_cure(kind, actions, cure):
    with pytest.raises(RegistrationError, match=cure):
        serve(kind, actions)


def test_a_field_may_be_called_as_a_keyword_of_openapi():
    member = {"type": "string", "nullable": True}
    schema = {"type": "object", "readOnly": True, "properties": {"nullable": member}}
    assert as_json_schema(schema) == {
        "type": "object",
        "properties": {"nullable": {"type": "string"}},
    }


def test_a_decimal_is_described_as_the_text_that_it_is():
    class Price(serializers.Serializer):
        amount = serializers.DecimalField(8, 2, min_value=1)
        pieces = serializers.IntegerField(min_value=1)

    class Prices(generics.CreateAPIView):
        serializer_class = Price
        permission_classes: ClassVar[list[Any]] = []

    server = MCPServer("test")
    server.viewset(Prices, actions=["post"])
    (tool,) = client_of(server).list_tools()
    assert tool["inputSchema"]["properties"] == {
        "amount": {"type": "string", "format": "decimal"},
        "pieces": {"type": "integer", "minimum": 1},
    }
