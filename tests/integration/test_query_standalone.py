"""`send_query` and `run_all_queries` where people call them: in notebooks, with any text, at TLS servers."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.support.certificates import make_certificates
from tests.support.https_server import https_server
from tests.support.query_results import baseline
from tests.support.scripted_api import ScriptedApi
from tests.support.tree import ROOT
from worker import standalone

HALF = "How \ud800?"
ASK = "import sys; from worker.standalone import send_query; print(send_query(sys.argv[1], 'How?')['error'])"


def test_both_work_where_a_loop_runs() -> None:
    """Called without `await` from a coroutine, as in a notebook's cell, they return what they always do."""
    threads = set[int]()

    async def cell(url: str) -> None:
        """Calls both, with the documents' signatures."""
        assert standalone.send_query(url, "How?")["error"] is None
        callbacks = standalone.Callbacks(result=lambda _result: threads.add(threading.get_ident()))
        found = standalone.run_all_queries([baseline("Q-01"), baseline("Q-02")], url, 0, callbacks=callbacks)
        assert [result["overall_pass"] for result in found] == [True, True]

    with ScriptedApi() as api:
        asyncio.run(cell(api.url))
    assert threads == {threading.get_ident()}  # whoever prints does so in the cell's own thread


def test_half_a_surrogate_pair_is_sent_as_json_has_it() -> None:
    """It reaches the API escaped, as `json.dumps` writes it, and stands in the result as it was given."""
    with ScriptedApi() as api:
        assert standalone.send_query(api.url, HALF)["error"] is None
        [result] = standalone.run_all_queries([baseline("Q-01", query=HALF)], api.url, 0)
    assert (result["query"], result["overall_pass"]) == (HALF, True)
    assert [request.query for request in api.requests] == [HALF, HALF]


def test_metadata_addresses_are_not_called() -> None:
    """The rules of workers hold for them too."""
    reply = standalone.send_query("http://169.254.169.254", "How?")
    assert reply["error"] == "169.254.169.254 is a link-local or metadata address; never called"


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_certificate_is_trusted_through_ssl_cert_file(tmp_path: Path, *, is_trusted: bool) -> None:
    """A certificate of one's own says that it is not trusted and what helps, and that helps."""
    certificates = make_certificates(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment |= {"SSL_CERT_FILE": str(certificates.authority)} if is_trusted else {}
    with https_server(certificates, b'{"answer": "yes"}') as url:
        done = subprocess.run(
            (sys.executable, "-c", ASK, url),
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stderr == ""
    if is_trusted:
        assert done.stdout == "None\n"
    else:
        place = url.removeprefix("https://")
        assert done.stdout.startswith(f"the certificate of {place} is not trusted: ")
        assert "SSL_CERT_FILE" in done.stdout
