"""A certificate authority of the tests' own, with a server and a client certificate for loopback."""

import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.tools import require_tool

NAMES: Final = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Certificates(NamedTuple):
    """Files in PEM form."""

    authority: Path
    certificate: Path
    """Serves for servers and clients alike."""
    key: Path

    @property
    def query(self) -> str:
        """The options of a URL that check the server and show our own certificate."""
        return f"ssl_ca_certs={self.authority}&ssl_certfile={self.certificate}&ssl_keyfile={self.key}"


def make_certificates(folder: Path) -> Certificates:
    """Makes an authority and a certificate that it signed.

    Args:
        folder: where the files go.
    """
    openssl = require_tool("openssl")
    new = (openssl, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made = Certificates(folder / "ca.pem", folder / "cert.pem", folder / "key.pem")
    authority_key, request, names = folder / "ca.key", folder / "request.pem", folder / "names"
    names.write_text(NAMES)
    signing = ("-CA", made.authority, "-CAkey", authority_key, "-CAcreateserial", "-extfile", names)
    for command in (
        (
            *new,
            "-x509",
            "-days",
            "2",
            "-subj",
            "/CN=test authority",
            "-keyout",
            authority_key,
            "-out",
            made.authority,
        ),
        (*new, "-subj", "/CN=localhost", "-keyout", made.key, "-out", request),
        (openssl, "x509", "-req", "-days", "2", "-in", request, *signing, "-out", made.certificate),
    ):  # fmt: skip - one command a line
        subprocess.run(command, check=True, capture_output=True)
    return made
