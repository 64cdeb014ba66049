"""Failed sign-ins: which names are locked out, and a way to unlock them."""

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from responses_api.admin.elements.display import badge, timestamp
from responses_api.admin.elements.lists import List
from responses_api.admin.site import site


@admin.register(AccessAttempt, site=site)
class AttemptAdmin(List):
    """One line per name, address and browser. Deleting a name's lines lets it sign in again."""

    list_display = ("username", "ip_address", "failures", "last", "state")
    search_fields = ("username", "ip_address")
    fields = ("username", "ip_address", "user_agent", "failures_since_start", "attempt_time")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: AccessAttempt | None = None) -> bool:
        return False

    @admin.display(description="wrong passwords", ordering="failures_since_start")
    def failures(self, attempt: AccessAttempt) -> int:
        return int(attempt.failures_since_start)

    @admin.display(description="last", ordering="attempt_time")
    def last(self, attempt: AccessAttempt) -> str:
        return timestamp(attempt.attempt_time)

    @admin.display(description="state")
    def state(self, attempt: AccessAttempt) -> SafeString:
        recent = timezone.now() - attempt.attempt_time < settings.AXES_COOLOFF_TIME
        locked = recent and attempt.failures_since_start >= settings.AXES_FAILURE_LIMIT
        return badge("locked out", "bad") if locked else badge("may sign in", "good")
