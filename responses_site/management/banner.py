"""The text that a server prints when it is ready: how to use it, with snippets to paste."""

from django.conf import settings
from django.db import connection

from responses_api.models import User
from responses_api.services.accounts.authenticate import is_open
from responses_api.web.quickstart import quickstart


def banner(base_url: str) -> str:
    """The text for a server at ``base_url``, without ``/v1``."""
    needs_key = not is_open()
    snippets = quickstart(f"{base_url}/v1", settings.RESPONSES_DEFAULT_MODEL, needs_key)
    has_administrator = User.objects.filter(is_superuser=True, is_active=True).exists()
    connection.close()
    sign_in = "sign in with your administrator's name" if has_administrator else "make a sign-in first: make admin"
    access = "needs a key: make key NAME=me PROJECT=default" if needs_key else "open to this machine, no key needed"
    return "\n".join(
        [
            "",
            "mlx-responses is ready",
            f"  API    {base_url}/v1   ({access})",
            f"  Admin  {base_url}/admin/   ({sign_in})",
            f"  Start  {base_url}/   (this text as a page)",
            "",
            "With curl:",
            "",
            snippets.curl.rstrip(),
            "",
            "With the OpenAI SDK (pip install openai):",
            "",
            snippets.python.rstrip(),
            "",
            "Ctrl-C stops the server.",
            "",
        ]
    )
