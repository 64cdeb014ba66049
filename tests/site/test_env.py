"""The environment: the values of each setting, and the errors for bad ones."""

from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from responses_site.env import Environment, SettingError, declarations, unknown_names
from responses_site.setting_kinds import BASE_DIR, MIB

TEAM = {
    "REDIS_URL": "redis://127.0.0.1",
    "DATABASE_URL": "postgresql://127.0.0.1/db",
    "RESPONSES_SECRET_KEY": "abcdefghij" * 5,
}


def test_nothing_set_is_the_embedded_shape_on_loopback() -> None:
    """Every setting has a default, so that `make serve` needs none."""
    environment = Environment.read({})
    assert not environment.team
    assert environment.bound_to_loopback
    assert (environment.port, environment.data_dir) == (8080, BASE_DIR / ".data")


def test_an_empty_value_counts_as_unset() -> None:
    """`PORT= make serve` is `make serve`."""
    assert Environment.read({"PORT": " ", "RESPONSES_MODELS": ""}) == Environment.read({})


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("RESPONSES_BODY_MAX_BYTES", "2 MiB", "body_max_bytes", 2 * MIB),
        ("RESPONSES_BODY_MAX_BYTES", "4096", "body_max_bytes", 4096),
        ("RESPONSES_STORE_DEFAULT", "No", "store_default", False),
        ("RESPONSES_LEASE_SECONDS", "0.5", "lease_seconds", 0.5),
        ("RESPONSES_MODELS", "a, b,,c ", "models", ("a", "b", "c")),
        ("RESPONSES_ENGINE", "Scripted", "engine", "scripted"),
        ("HOST", "[::1]", "host", "::1"),
        ("RESPONSES_CSRF_TRUSTED_ORIGINS", "https://a.example/", "csrf_trusted_origins", ("https://a.example",)),
        ("RESPONSES_CORS_ORIGINS", "*", "cors_origins", ("*",)),
        (
            "RESPONSES_CORS_ORIGINS",
            "https://A.example:8443/, tauri://localhost",
            "cors_origins",
            ("https://a.example:8443", "tauri://localhost"),
        ),
        ("RESPONSES_DATA_DIR", "/var/lib/responses", "data_dir", Path("/var/lib/responses")),
        ("RESPONSES_DATA_DIR", "second", "data_dir", BASE_DIR / "second"),
    ],
)
def test_values_are_read_by_kind(name: str, text: str, attribute: str, value: object) -> None:
    """Each kind takes what its documentation says."""
    assert getattr(Environment.read({name: text}), attribute) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PORT", "65536"),
        ("PORT", "http"),
        ("PORT", "٣"),
        ("HOST", "127.0.0.1.2.3"),
        ("HOST", "a b"),
        ("RESPONSES_STORE_DEFAULT", "maybe"),
        ("RESPONSES_STORE_TTL_SECONDS", "-1"),
        ("RESPONSES_BODY_MAX_BYTES", "64 MB"),
        ("RESPONSES_LEASE_SECONDS", "0"),
        ("RESPONSES_LEASE_SECONDS", "nan"),
        ("RESPONSES_ENGINE", "torch"),
        ("RESPONSES_LOG_LEVEL", "loud"),
        ("RESPONSES_CSRF_TRUSTED_ORIGINS", "a.example"),
        ("RESPONSES_CORS_ORIGINS", "a.example"),
        ("RESPONSES_CORS_ORIGINS", "https://a.example/chat"),
        ("RESPONSES_CORS_ORIGINS", "https://*.example"),
    ],
)
def test_a_bad_value_is_named_with_the_allowed_ones(name: str, text: str) -> None:
    """The message is one line with the variable, the allowed values, and the given one."""
    with pytest.raises(SettingError) as caught:
        Environment.read({name: text})
    message = str(caught.value)
    assert message.startswith(f"{name} must be ")
    assert repr(text) in message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL", "RESPONSES_BROKER_URL", "RESPONSES_SECRET_KEY"])
def test_a_bad_secret_is_not_repeated(name: str) -> None:
    """A value that may hold a password never reaches the terminal."""
    with pytest.raises(SettingError, match=f"^{name} must be ") as caught:
        Environment.read({name: "oracle://user:hunter2@db"})
    assert "hunter2" not in str(caught.value)


@given(st.sampled_from(declarations()), st.text())
def test_any_text_is_read_or_refused(declaration, text: str) -> None:
    """No value ends in another exception than `SettingError`."""
    with suppress(SettingError):
        Environment.read({**TEAM, declaration.name: text})


@pytest.mark.parametrize(
    ("missing", "named"),
    [("REDIS_URL", "REDIS_URL"), ("DATABASE_URL", "DATABASE_URL"), ("RESPONSES_SECRET_KEY", "RESPONSES_SECRET_KEY")],
)
def test_the_team_shape_names_the_missing_setting(missing: str, named: str) -> None:
    """A team needs Redis, PostgreSQL and one secret; SQLite or a secret made by each process would split it."""
    given = {**TEAM, "RESPONSES_BROKER_URL": "amqp://127.0.0.1"}
    del given[missing]
    with pytest.raises(SettingError, match=f"^{named} "):
        Environment.read(given)
    assert Environment.read(TEAM).team


@pytest.mark.parametrize(
    ("host", "loopback"), [("127.0.0.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_loopback_addresses_are_recognised(host: str, loopback: bool) -> None:
    """Open access depends on it."""
    assert Environment.read({"HOST": host}).bound_to_loopback is loopback


def test_an_unknown_name_gives_a_warning_with_the_nearest() -> None:
    """A typo would otherwise be ignored silently."""
    assert unknown_names({"RESPONSES_BODY_MAXBYTES": "1", "RESPONSES_ENGINE": "mlx", "RESPONSES_TEST_STRICT": "1"}) == [
        "RESPONSES_BODY_MAXBYTES is not a setting; did you mean RESPONSES_BODY_MAX_BYTES?"
    ]


def test_every_setting_reaches_the_code() -> None:
    """A variable that nothing reads would be accepted and ignored."""
    elsewhere = {
        "RESPONSES_BROKER_URL",
        "RESPONSES_SECRET_KEY",
        "RESPONSES_SECRET_KEY_FALLBACKS",
        "RESPONSES_ALLOWED_HOSTS",
    }
    elsewhere |= {"RESPONSES_CSRF_TRUSTED_ORIGINS", "RESPONSES_DATABASE_CONNECTIONS"}
    names = {declaration.name for declaration in declarations() if declaration.name.startswith("RESPONSES_")}
    assert {name for name in names if not hasattr(settings, name)} == elsewhere
