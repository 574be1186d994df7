"""nginx with our configuration, before a server of ours, on free ports of this machine."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.deploy.compose import ROOT
from tests.deploy.programs import run_until_it_answers
from tests.integration.server_process import find_free_port, start_server

CONFIGURATION: Final = ROOT / "deploy" / "nginx" / "limelight.conf"
PREFIX: Final = "/attn"
# What Debian's own nginx.conf has around the files of conf.d, for an account of any kind.
AROUND: Final = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 128; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/limelight.conf;
}}
"""


def write_certificate(folder: Path) -> Path:
    """A certificate for localhost that signs itself; its key is beside it."""
    certificate, key = folder / "fullchain.pem", folder / "privkey.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return certificate


def write_configuration(folder: Path, server: str, plain_port: int, port: int) -> Path:
    """Our configuration, for other ports and another certificate, and what it is included in."""
    changes = {
        "server 127.0.0.1:8000;": f"server {server};",
        "listen 80;": f"listen 127.0.0.1:{plain_port};",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/nginx/tls": str(folder),
        "attention.example.com": "localhost",
    }
    text = CONFIGURATION.read_text()
    for ours, here in changes.items():
        assert ours in text, ours
        text = text.replace(ours, here)
    (folder / "limelight.conf").write_text(text)
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder))
    return file


@dataclass(frozen=True)
class Nginx:
    """An nginx that runs.

    Attributes:
        url: its address, without the prefix.
        plain_url: that without TLS.
        certificate: that it shows; it signs itself.
    """

    url: str
    plain_url: str
    certificate: Path


@contextmanager
def start_nginx(folder: Path) -> Iterator[Nginx]:
    """An nginx that keeps its files in `folder`, before a server of the demo below `PREFIX`."""
    plain_port, port = find_free_port(), find_free_port()
    certificate = write_certificate(folder)
    with start_server(LIMELIGHT_ROOT_PATH=PREFIX) as server:
        address = server.url.removeprefix("http://").removesuffix(PREFIX)
        file = write_configuration(folder, address, plain_port, port)
        command = ["nginx", "-p", str(folder), "-c", str(file)]
        check_configuration(command)
        nginx = Nginx(f"https://localhost:{port}", f"http://localhost:{plain_port}", certificate)
        ready = f"{nginx.url}{PREFIX}/v2/health/ready"
        with run_until_it_answers(command, ready, folder / "log", certificate=certificate):
            yield nginx


def check_configuration(command: list[str]) -> None:
    """nginx takes its configuration, and warns of nothing in it."""
    done = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr, done.stderr
