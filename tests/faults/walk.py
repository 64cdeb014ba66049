"""Requests without access to all URLs of both documented deployments: all get 401 or 403.

The deployment with TLS uses a real nginx, with the configuration from docs/deployment.
"""

import re
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.live.server import LiveServer, embedded, free_ports, running

from .cases import Case
from .deployments import Missing, fresh_directory, wait_for_port

NGINX_CONF = Path(__file__).parents[2] / "docs/deployment/nginx.conf"
NAME = "llm.example.com"
PAGE = "https://chat.example.com"
METHODS = ("GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS")
PARAMETER = re.compile(r"{\w+}")
OPEN_TO_ALL = {"/v1/openapi.json", "/openapi.json", "/healthz", "/readyz"}
DELETE_KEYS = "from responses_api.models import ApiKey\nApiKey.objects.all().delete()"
REVOKE_KEY = """
from responses_api.models import ApiKey
from responses_api.services.accounts.create_key import revoke_key
revoke_key(key=ApiKey.objects.latest("pk"))
"""


def run_walk(directory: Path, *, jobs: int, seed: int) -> Iterator[Case]:
    """Loopback, then TLS."""
    with (
        running(embedded(fresh_directory(directory / "loopback"))) as server,
        httpx.Client(base_url=origin(server)) as http,
    ):
        yield from walk("loopback", server, http, has_tls=False)
    try:
        with behind_nginx(directory / "tls") as (server, http):
            yield from walk("TLS proxy", server, http, has_tls=True)
    except Missing as missing:
        yield Case(f"walk, TLS proxy: skipped, {missing}")


def walk(name: str, server: LiveServer, http: httpx.Client, *, has_tls: bool) -> Iterator[Case]:
    """All kinds of clients without access, one after the other. Keys are created and deleted meanwhile."""
    response_id = stored_response(server, http) if not has_tls else "resp_x"
    if has_tls:
        yield check_access(f"{name}, before the first key", http, {401}, response_id)
    yield check_access(f"{name}, a page of another site", http, {401, 403}, response_id, {"origin": PAGE})
    yield check_access(
        f"{name}, a page that names no site", http, {401, 403}, response_id, {"sec-fetch-site": "cross-site"}
    )
    if not has_tls:
        yield check_access(
            f"{name}, forwarded from elsewhere", http, {401}, response_id, {"x-forwarded-for": "203.0.113.7"}
        )
    revoked = server.make_key("revoked")
    server.manage("shell", "-v", "0", "-c", REVOKE_KEY)
    yield check_access(f"{name}, no key", http, {401}, response_id)
    yield check_access(f"{name}, a wrong key", http, {401}, response_id, {"authorization": "Bearer sk-mlx-wrong"})
    yield check_access(f"{name}, a revoked key", http, {401}, response_id, {"authorization": f"Bearer {revoked}"})
    server.manage("shell", "-v", "0", "-c", DELETE_KEYS)
    yield check_access(f"{name}, no key after the last was deleted", http, {401}, response_id)
    yield check_access(f"{name}, the deleted key", http, {401}, response_id, {"authorization": f"Bearer {revoked}"})


def check_access(
    name: str, http: httpx.Client, expected: set[int], response_id: str, headers: dict[str, str] | None = None
) -> Case:
    """Send requests to every documented URL, with every method, plain and as a stream."""
    case, statuses = Case(f"walk, {name}"), Counter[int]()
    paths = http.get("/openapi.json").raise_for_status().json()["paths"].keys() - OPEN_TO_ALL
    for path in sorted({*paths, *(path.removeprefix("/v1") for path in paths)} - OPEN_TO_ALL):
        for method in METHODS:
            for query in ("", "?stream=true&foo=1"):
                url = PARAMETER.sub(response_id, path) + query
                body = b'{"input": "x", "stream": true}' if method in ("POST", "PUT") else None
                sent = {"content-type": "application/json", **(headers or {})}
                answer = http.request(method, url, content=body, headers=sent)
                statuses[answer.status_code] += 1
                case.check(answer.status_code in expected, f"{method} {url} returned {answer.status_code}")
    case.figures = [f"{count} requests with status {status}" for status, count in sorted(statuses.items())]
    return case


def stored_response(server: LiveServer, http: httpx.Client) -> str:
    """Create a response that processes on this machine may read. Returns its id."""
    response_id: str = http.post("/v1/responses", json={"input": "a secret"}).raise_for_status().json()["id"]
    assert http.get(f"/v1/responses/{response_id}").status_code == 200
    return response_id


def origin(server: LiveServer) -> str:
    return f"http://127.0.0.1:{server.port}"


@contextmanager
def behind_nginx(directory: Path) -> Iterator[tuple[LiveServer, httpx.Client]]:
    """A server with the settings for TLS, and a client that reaches it through nginx. Raises :class:`Missing`."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/opt/homebrew/bin")
    openssl = shutil.which("openssl")
    if nginx is None or openssl is None:
        raise Missing("needs nginx and openssl")
    directory = fresh_directory(directory)
    server = embedded(directory, RESPONSES_BEHIND_TLS="true", RESPONSES_ALLOWED_HOSTS=f"{NAME},127.0.0.1")
    port = free_ports(1)
    certificate, key = directory / "certificate.pem", directory / "certificate.key"
    subprocess.run(
        f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN={NAME} -addext subjectAltName=DNS:{NAME} "
        f"-keyout {key} -out {certificate}".split(),
        check=True,
        capture_output=True,
    )
    site = NGINX_CONF.read_text()
    for old, new in {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "server 127.0.0.1:8080;": f"server 127.0.0.1:{server.port};",
        "    server 127.0.0.1:8081;\n": "",
        f"/etc/ssl/{NAME}.pem": str(certificate),
        f"/etc/ssl/{NAME}.key": str(key),
    }.items():
        assert old in site, f"{NGINX_CONF} has no {old}"
        site = site.replace(old, new)
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (directory / "nginx.conf").write_text(
        f"pid {directory}/nginx.pid; daemon off; error_log {directory}/error.log; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{site}\n}}\n"
    )
    with running(server):
        proxy = subprocess.Popen([nginx, "-p", str(directory), "-c", "nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            wait_for_port(port)
            trust = ssl.create_default_context(cafile=str(certificate))
            with httpx.Client(
                base_url=f"https://127.0.0.1:{port}", transport=_ByName(trust), headers={"host": NAME}, timeout=30
            ) as http:
                yield server, http
        finally:
            proxy.terminate()
            proxy.wait()


class _ByName(httpx.HTTPTransport):
    """Connects to 127.0.0.1 with the server's name, as if the name resolved to this address."""

    def __init__(self, trust: ssl.SSLContext) -> None:
        super().__init__(verify=trust)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.extensions["sni_hostname"] = NAME
        return super().handle_request(request)
