"""An HTTPS server for tests: answers every request with the same JSON, under a certificate of its own."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.certificates import Certificates


@contextmanager
def https_server(certificates: Certificates, body: bytes) -> Iterator[str]:
    """Serves on a free port of the loopback; yields the URL.

    Args:
        certificates: its own is shown.
        body: of every reply.
    """

    class Handler(BaseHTTPRequestHandler):
        """Answers."""

        def do_POST(self) -> None:
            """Answers a request."""
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Logs nothing."""

    class Server(ThreadingHTTPServer):
        """Takes connections that break off without a word."""

        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Says nothing of a client that does not trust it."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"https://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(10)
