"""A chat in the browser: `proctor serve` decides each turn, and a model answers while one reads.

proctor serve --json --model sample --api-base http://localhost:3000/v1 | python chat_server.py
"""

import json
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen
from uuid import uuid4

SERVICE = json.loads(sys.stdin.readline())
"""What `proctor serve --json` prints first: its URL and a token, which the browser never sees."""


def turn_of(thread: str, message: str) -> dict[str, Any]:
    """Makes the turn of a message; it signals a decision, which a real chat would ask its model for."""
    turn: dict[str, Any] = {"threadId": thread, "message": message, "messageId": uuid4().hex}
    if "let's" in message.lower():
        signal = {"kind": "decision_made", "confidence": "high", "source": "server"}
        items = [{"endMessageId": turn["messageId"], **signal}]
        turn["signals"] = {"updatedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "items": items}
    return turn


class Chat(BaseHTTPRequestHandler):
    """Answers the page and what is said in it."""

    def do_GET(self) -> None:
        """Sends the page."""
        self.start("text/html; charset=utf-8")
        self.wfile.write(Path(__file__).with_name("chat.html").read_bytes())

    def do_POST(self) -> None:
        """Has a turn decided and answered, and hands the events on as they come."""
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        turn = json.dumps(turn_of(said["thread"], said["message"])).encode()
        headers = {"Authorization": f"Bearer {SERVICE['token']}", "Accept": "text/event-stream"}
        self.start("text/event-stream")
        try:
            with urlopen(Request(SERVICE["url"] + "/v1/turns", turn, headers)) as events:
                for line in events:
                    self.wfile.write(line)
        except HTTPError as error:
            self.wfile.write(b"event: error\ndata: " + error.read() + b"\n\n")

    def start(self, kind: str) -> None:
        """Begins a reply."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()


SERVER = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Chat)
print(f"chat at http://127.0.0.1:{SERVER.server_port}", flush=True)
SERVER.serve_forever()
