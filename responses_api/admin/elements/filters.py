"""Filters whose choices cost one small query, or none."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from responses_api.models import ServedModel


class ModelFilter(admin.SimpleListFilter):
    """By model; the choices are all models that were ever served, since the names in use are expensive to find."""

    title = "model"
    parameter_name = "model"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in ServedModel.objects.values_list("name", flat=True)]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(model=self.value()) if self.value() else queryset


class ItemTypeFilter(admin.SimpleListFilter):
    """Items by type."""

    title = "type"
    parameter_name = "type"
    types = ("message", "function_call", "function_call_output", "reasoning", "compaction")

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.types]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(type=self.value()) if self.value() else queryset


class KeyStateFilter(admin.SimpleListFilter):
    """Keys by whether they are valid."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "active"), ("expired", "expired"), ("revoked", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        past = Q(expires_at__lte=timezone.now())
        match self.value():
            case "active":
                return queryset.filter(~past | Q(expires_at=None), revoked_at=None)
            case "expired":
                return queryset.filter(past, revoked_at=None)
            case "revoked":
                return queryset.exclude(revoked_at=None)
        return queryset


class LivenessFilter(admin.SimpleListFilter):
    """Processes by whether they are live; for lists annotated with ``live``."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("live", "live"), ("silent", "silent")]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(live=self.value() == "live") if self.value() else queryset
