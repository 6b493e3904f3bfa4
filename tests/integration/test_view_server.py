"""`proctor view` answers whoever has its token: pages, live parts, actions; a real server and ledger."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
from aiohttp import ClientSession

from producer.access import Access
from producer.view import desk
from producer.view.request_guard import TOKEN_HEADER
from shared.ledger.ledger import Ledger
from tests.support.case_pages import rows_of
from tests.support.redis_server import RedisServer
from tests.support.viewed_runs import (
    OUTPUTS,
    TOKEN,
    WORKER,
    access_to,
    answer,
    at,
    cases_run,
    get,
    served,
    told,
)
from tests.support.viewer_pages import unpacked

if TYPE_CHECKING:
    import redis

SOON_S: Final = 5.0
"""For what a quiet machine shows within a second."""


@pytest.fixture
def access(redis_url: str, tmp_path: Path) -> Iterator[Access]:
    """The way to the session's server."""
    with access_to(redis_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def address(access: Access) -> Iterator[str]:
    """The address of the first page of a running server."""
    with served(access) as found:
        yield found


async def post(address: str, **headers: str) -> tuple[int, dict[str, Any]]:
    """Status and document of an action."""
    async with ClientSession() as session, session.post(address, headers=headers) as found:
        return found.status, json.loads(text) if (text := await found.text()).startswith("{") else {}


def test_nothing_is_answered_without_the_token(address: str, redis_client: "redis.Redis") -> None:
    """The printed address answers 200 without a redirect, with a strict policy; all others need its token."""
    run = cases_run(redis_client, "run-a")
    paths = ["/", "/nowhere", "/live", "/static/view.js", f"/run/{run}", f"/run/{run}/item/case-0"]
    base = address.split("/?", maxsplit=1)[0]

    async def ask() -> None:
        async with ClientSession() as session, session.get(address, allow_redirects=False) as found:
            assert found.status == 200
            policy = found.headers["Content-Security-Policy"]
            assert "script-src 'self'" in policy
            assert "unsafe" not in policy
            page = await found.text()
            assert not re.search(r"<script(?![^>]* src=)|\son\w+=|\sstyle=|<style", page)
        for path in paths:
            assert (await get(f"{base}{path}"))[0] == 403, path
            assert (await get(f"{base}{path}?token=other"))[0] == 403, path
        assert (await get(address, Host="evil.example"))[0] == 403
        assert (await get(at(address, "/nowhere")))[0] == 404

    asyncio.run(ask())


def test_another_origin_cannot_cancel(address: str, access: Access, redis_client: "redis.Redis") -> None:
    """A form, an image and a script of another page change nothing; our own page does."""
    run = cases_run(redis_client, "run-a", done=2)
    cancel, origin = at(address, f"/run/{run}/cancel"), "http://" + urlsplit(address).netloc
    token = {TOKEN_HEADER: TOKEN}

    async def ask() -> None:
        refused = [
            {},
            {"Origin": "http://evil.example"},
            {**token, "Origin": "http://evil.example"},
            {**token, "Origin": "http://127.0.0.1:1"},
            {**token, "Sec-Fetch-Site": "cross-site"},
            {**token, "Sec-Fetch-Site": "same-site", "Origin": origin},
        ]
        for headers in refused:
            assert (await post(cancel, **headers))[0] == 403, headers
        assert (await get(cancel))[0] == 405
        assert access.store.info(run).state == "running"
        paused = await post(at(address, f"/run/{run}/pause"), **token, Origin=origin)
        assert paused == (200, {"said": f"{run} is paused", "hint": ""})
        assert (await post(cancel, **token, Origin=origin))[0] == 200
        assert access.store.info(run).is_final
        status, said = await post(at(address, f"/run/{run}/pause"), **token)
        assert (status, said["said"]) == (409, f"run {run} is cancelled already")

    asyncio.run(ask())


def test_runs_are_listed_filtered_and_searched(address: str, redis_client: "redis.Redis") -> None:
    """Rate with interval, change since the run before of the name; search and filters are in the address."""
    cases_run(redis_client, "run-a", name="desk", cases=100, outputs=[OUTPUTS[1]])
    cases_run(redis_client, "run-b", name="desk", cases=100, outputs=[OUTPUTS[0]])
    cases_run(redis_client, "run-c", name="<b>other</b>")

    async def ask() -> None:
        status, page = await get(address)
        assert (status, page.count("<tr data-row")) == (200, 3)
        assert "▲ 100.0 points" in page
        assert "<b>other" not in page
        for query, expected in (
            ({"q": "DESK"}, ["run-b", "run-a"]),
            ({"standing": "good"}, ["run-b"]),
            ({"kind": "cases", "q": "other"}, ["run-c"]),
            ({"kind": "turns"}, []),
            ({"where": "failed and age < 1h"}, ["run-c", "run-a"]),
            ({"where": "rate > 90%25 and model = acme/quick", "name": "desk"}, ["run-b"]),
            ({"where": "error"}, ["run-c"]),
            ({"where": "finished and items = 8 and not cost > 5"}, ["run-c"]),
        ):
            found = (await get(at(address, "/", **query)))[1]
            assert re.findall(r'<tr data-row data-id="([^"]*)"', found) == expected, query
        assert (await get(at(address, "/", page="x")))[0] == 400
        wrong = (await get(at(address, "/", where="rat > 1")))[1]
        assert ("did you mean &#39;rate&#39;?" in wrong, 'value="rat &gt; 1"' in wrong) == (True, True)

    asyncio.run(ask())


def test_rows_are_read_by_position(address: str, redis_client: "redis.Redis") -> None:
    """A page of rows begins anywhere; an outcome chooses; an item has a link of its own."""
    cases_run(redis_client, "run-a", cases=300)

    async def ask() -> None:
        def positions(page: str) -> list[int]:
            return [int(found) for found in re.findall(r'data-row data-letter="." data-id="(\d+)"', page)]

        page = (await get(at(address, "/run/run-a", number=101)))[1]
        assert positions(page) == list(range(100, 150))
        page = (await get(at(address, "/run/run-a", number=101, where="failed")))[1]
        assert positions(page) == list(range(101, 300, 4))[:50]
        assert '<span class="num">75</span> of 300 cases' in page
        slow = (await get(at(address, "/run/run-a", where="not+passed+and+latency>=1s+or+id=ticket-7")))[1]
        assert positions(slow) == [6, *(at for at in range(1, 300, 4) if 100 + 37 * at % 1_000 >= 1_000)]
        wrong = (await get(at(address, "/run/run-a", where="scor<1")))[1]
        assert "no field is called" in wrong
        status, item = await get(at(address, "/run/run-a/item/case-101"))
        assert (status, "ticket-102" in item, "Lyon" in item) == (200, True, True)
        assert (await get(at(address, "/run/run-a/item/case-300")))[0] == 404
        assert (await get(at(address, "/run/run-none")))[0] == 404

    asyncio.run(ask())


def test_progress_is_told_to_all_who_look(address: str, redis_client: "redis.Redis") -> None:
    """A result is on the pages of two readers within a second or so; the last one ends the following."""
    run = cases_run(redis_client, "run-a", cases=8, done=0)
    stream = at(address, "/live", topic=run)

    async def ask() -> None:
        tabs = [asyncio.create_task(told(stream, "<b>4</b> passed")) for _ in range(2)]
        everything = asyncio.create_task(told(at(address, "/live", topic=""), "<b>4</b> passed"))
        await told(stream, "<b>0</b> passed")
        answer(redis_client, run, list(rows_of(["acme/quick"], 8, OUTPUTS)))
        async with asyncio.timeout(SOON_S):
            for message in await asyncio.gather(*tabs):
                assert message["parts"]["card"]
        everything.cancel()

    asyncio.run(ask())


def test_an_item_is_asked_again(address: str, access: Access, redis_client: "redis.Redis") -> None:
    """One item of a run that has ended is put back to work, and so are those that ended in an error."""
    store = access.store
    cases_run(redis_client, "run-a")
    cases_run(redis_client, "run-b")

    async def ask() -> None:
        token = {TOKEN_HEADER: TOKEN}
        assert (await post(at(address, "/run/run-a/item/case-1/again"), **token))[0] == 200
        assert (store.info("run-a").state, store.info("run-a").done) == ("running", 7)
        assert (await post(at(address, "/run/run-b/retry"), **token))[1]["said"].startswith("2 items")
        assert (await post(at(address, "/run/run-b/burn"), **token))[0] == 404

    asyncio.run(ask())


def test_a_server_that_dies_returns(redis_client: "redis.Redis", redis_url: str, tmp_path: Path) -> None:
    """After a restart on the same port the same address is answered, and the stream goes on."""
    cases_run(redis_client, "run-a", done=2)
    with access_to(redis_url, tmp_path) as access, ExitStack() as stack:
        address = stack.enter_context(served(access))
        port = urlsplit(address).port
        assert asyncio.run(told(at(address, "/live", topic="run-a"), "passed"))
        stack.close()
        with pytest.raises(OSError, match="Cannot connect"):
            asyncio.run(get(address))
        again = stack.enter_context(served(access, port=port or 0))
        assert again == address
        assert asyncio.run(told(at(address, "/live", topic="run-a"), "passed"))


def test_reports_and_comparisons_are_pages_of_the_server(address: str, redis_client: "redis.Redis") -> None:
    """The report of a run and the comparison of any two, under a policy of what is in them."""
    cases_run(redis_client, "run-a")
    cases_run(redis_client, "run-b", outputs=[OUTPUTS[0]])

    async def ask() -> None:
        async with ClientSession() as session, session.get(at(address, "/run/run-a/report")) as found:
            policy, page = found.headers["Content-Security-Policy"], await found.text()
            own = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
            assert own
            hashes = set(re.findall(r"sha256-[^&']*", own[1].replace("&#39;", "'")))
            assert hashes <= set(re.findall(r"sha256-[^']*", policy))
            assert "unsafe" not in policy
            for place, name in (("/", "Runs"), ("/run/run-a", "Support desk")):
                assert f'<a href="{place}?token={TOKEN}"><bdi>{name}</bdi></a>' in page
        status, page = await get(at(address, "/compare", run="run-b") + "&run=run-a")
        assert (status, "4 fixed" in page) == (200, True)
        assert f'<a href="/run/run-a/item/case-1?token={TOKEN}">A</a>' in page
        assert (await get(at(address, "/compare", run="run-b")))[0] == 400

    asyncio.run(ask())


def test_pairs_are_filtered_by_either_answer(address: str, redis_client: "redis.Redis") -> None:
    """In the words of `results --where`, without which no pair is left out; a mistake is said with a hint."""
    cases_run(redis_client, "run-a", source="stdin")
    cases_run(redis_client, "run-b", outputs=[OUTPUTS[0]], source="stdin")
    pair = at(address, "/compare", run="run-a") + "&run=run-b&where="

    async def rows(where: str) -> list[str]:
        page = (await get(pair + where))[1]
        return re.findall(r'data-title="(ticket-\d+) ', unpacked(page))

    async def ask() -> None:
        assert await rows("") == [f"ticket-{number}" for number in (2, 4, 6, 8)]
        assert await rows("failed and id %3D ticket-2, ticket-4") == ["ticket-2"]
        assert await rows("error %3D upstream_timeout") == ["ticket-4", "ticket-8"]
        assert "No pair that differs meets" in (await get(pair + "tag %3D none"))[1]
        page = (await get(pair + "scor < 1"))[1]
        assert "did you mean &#39;score&#39;?" in page
        assert f'href="/run/run-a?token={TOKEN}">A</a>' in page
        assert ("<bdi>Support desk</bdi>" in page, "<bdi>stdin</bdi>" in page) == (True, False)

    asyncio.run(ask())


def test_several_runs_stand_beside_a_baseline(address: str, redis_client: "redis.Redis") -> None:
    """The earliest run unless another is named; filters and where cells lead are addresses."""
    good, wrong = OUTPUTS[0], OUTPUTS[1]
    cases_run(redis_client, "run-a", cases=70, outputs=[good, wrong])
    cases_run(redis_client, "run-b", cases=70, outputs=[good])
    cases_run(redis_client, "run-c", cases=60, outputs=[wrong])
    path = at(address, "/compare", run="run-c") + "&run=run-a&run=run-b"

    async def ask() -> None:
        def rows(page: str) -> list[str]:
            return re.findall(r'scope="row"><span dir="auto">([^<]*)</span>', page)

        async def whole(more: str = "") -> str:
            async with asyncio.timeout(SOON_S):
                while "data-unfinished" in (page := (await get(path + more))[1]):
                    pass
            return page

        page = await whole()
        assert "run-c is worse; run-b is better than run-a" in page
        assert page.count("30 broken") == 1
        assert rows(page)[:3] == [f"ticket-{number}" for number in (2, 4, 6)]
        assert f'href="/run/run-c/item/case-1?token={TOKEN}"' in page
        assert rows((await get(path + "&number=51"))[1])[-1] == "ticket-69"
        fixed = (await get(path + "&show=fixed&of=run-b"))[1]
        assert rows(fixed) == [f"ticket-{number}" for number in range(2, 71, 2)]
        found = await whole("&where=failed and id ~ ticket-1")
        assert sorted(rows(found)) == sorted(f"ticket-{number}" for number in (1, *range(10, 20)))
        assert rows(await whole("&of=run-a&where=failed and id ~ ticket-1")) == [
            f"ticket-{number}" for number in range(10, 20, 2)
        ]
        assert "did you mean &#39;failed&#39;?" in await whole("&where=faild")
        other = (await get(path + "&baseline=run-b&show=fixed"))[1]
        assert ("run-a and run-c are worse than run-b" in other, rows(other)) == (True, [])
        pair = at(address, "/compare", run="run-a") + "&run=run-b"
        assert "Cases by run" in (await get(pair))[1]
        assert 'aria-label="Pages"' in (await get(pair + "&view=cases"))[1]
        assert (await get(path + "&show=burnt"))[0] == 400
        assert (await get(path + "".join(f"&run=run-{at}" for at in range(9))))[0] == 404

    asyncio.run(ask())


def test_the_fleet_counts_chunks_in_hand(access: Access, redis_client: "redis.Redis") -> None:
    """A claimed chunk is in the hand of its worker; a published one is in nobody's; each run has a line."""
    for run in ("run-a", "run-b"):
        cases_run(redis_client, run, cases=1_200, done=0, name=run)
    Ledger(redis_client, patience_s=5.0).claim("run-a", "0", "claim", WORKER)
    box = desk.fleet_box(desk.look(access.connect()))
    [line] = box.workers
    assert (line.name, line.text, line.share) == (WORKER, "cases; 1 of 1 chunk", 1.0)
    assert [(line.name, line.text) for line in box.chunks] == [
        ("run-b", "3 waiting"),
        ("run-a", "1 waiting, 1 published, 1 in hand"),
    ]


def test_a_redis_that_dies_returns(new_redis_server: Callable[..., RedisServer], tmp_path: Path) -> None:
    """Pages say that it is away, the server stays, and goes on when it is back."""
    redis_server = new_redis_server()
    with access_to(redis_server.url, tmp_path) as access, served(access) as address:
        assert asyncio.run(told(at(address, "/live"), "Fleet"))
        redis_server.kill()
        assert asyncio.run(told(at(address, "/live"), "Redis does not answer"))["away"]
        assert asyncio.run(get(address))[0] == 503
        redis_server.start()

        async def back() -> None:
            async with asyncio.timeout(SOON_S):
                await told(at(address, "/live"), "Fleet")
            assert (await get(address))[0] == 200

        asyncio.run(back())
