"""Users of the admin, and their groups."""

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group

from responses_api.admin.elements.paging import CappedPaginator
from responses_api.admin.site import site
from responses_api.models import User


@admin.register(User, site=site)
class PersonAdmin(UserAdmin):
    """Django's page for users."""

    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    show_full_result_count = False
    paginator = CappedPaginator


@admin.register(Group, site=site)
class TeamAdmin(GroupAdmin):
    """Django's page for groups."""

    show_full_result_count = False
    paginator = CappedPaginator
