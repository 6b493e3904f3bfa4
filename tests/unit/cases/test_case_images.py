"""Images in the HTML report of cases: which are shown, once each, and which are only named."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from producer.cases.bench_files import Images
from producer.cases.report import html_images
from producer.load.problems import Place
from shared.contracts.case_run import CasePayload, Image
from tests.support.case_pages import GOOD, item_row, run_info, write_page
from tests.support.images import png, stored

MODELS: Final = ("acme/quick", "acme/careful")
MAP: Final = png(3, 2)
SVG: Final = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"


def page(folder: Path, files: Mapping[str, bytes], cases: int = 1, **item: Any) -> str:
    """A report of cases that all have all files as their images."""
    rows = [
        item_row(
            at,
            CasePayload(at // 2, MODELS[at % 2], "Look.", **{"images": list(files), **item}),
            GOOD,
            ms=5,
            cost=None,
        )
        for at in range(2 * cases)
    ]
    path = write_page(folder / "report.html", run_info(MODELS, cases), rows, files=files)
    return path.read_text(encoding="utf-8")


def named(text: str) -> list[str]:
    """How the first case names its images."""
    [first, *_] = re.findall(r'<div class="pictures">(.*?)</div>', text, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", each) for each in re.findall(r"<(?:a|span) ?[^>]*><bdi>.*?</span>", first)]


def policy_of(text: str) -> str:
    """What a page may load."""
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    return str(policy)


def test_an_image_of_many_rows_stands_once_in_the_page(tmp_path: Path) -> None:
    """Each row links to it; the policy allows images within the page, and none from elsewhere."""
    text = page(tmp_path, dict([stored("map.png", MAP)]), cases=60)
    assert text.count("data:image/png;base64,") == 1
    assert text.count('data-figure="image-1"') == 60
    assert '<figure id="image-1"><img src="data:image/png;base64,' in text
    assert f'alt="map.png, {len(MAP)} B" loading="lazy"' in text
    assert policy_of(text).endswith("; img-src data:")


def test_a_page_without_images_may_load_none(tmp_path: Path) -> None:
    """Also where images are only named."""
    for files in ({}, dict([stored("a.svg", SVG)])):
        text = page(tmp_path, files)
        assert "img-src" not in policy_of(text)
        assert "<img" not in text


@pytest.mark.parametrize(
    ("data", "media_type", "note"),
    [
        (SVG, "image/png", "59 B, not shown: no PNG, JPEG, GIF or WebP"),
        (SVG, "image/svg+xml", "59 B, not shown: no PNG, JPEG, GIF or WebP"),
        (b"<script>", "text/html", "8 B, not shown: no PNG, JPEG, GIF or WebP"),
        (MAP[:8] + bytes(200_000), "image/png", "200.0 kB, not shown: larger than 200.0 kB"),
    ],
)
def test_what_is_no_small_image_is_named(tmp_path: Path, data: bytes, media_type: str, note: str) -> None:
    """The bytes decide, not the type that is stored beside them."""
    text = page(tmp_path, dict([stored("a.png", data, media_type)]))
    assert named(text) == [f"a.png {note}"]
    assert "data:" not in text.split("</head>")[1]


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
def test_other_types_are_shown_as_what_they_are(tmp_path: Path, start: bytes, media_type: str) -> None:
    """Whatever type is stored beside the bytes."""
    text = page(tmp_path, dict([stored("a", start + b"0" * 20, "text/html")]))
    assert f'<img src="data:{media_type};base64,' in text


def test_all_images_of_a_page_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that come when there is no more room are named; a smaller one may still have some."""
    monkeypatch.setattr(html_images, "PAGE_BYTES", 2_100)
    sizes = {"a": 1_000, "b": 1_000, "c": 1_000, "d": 100}
    files = dict(stored(name, (MAP + name.encode()).ljust(size, b"\0")) for name, size in sizes.items())
    text = page(tmp_path, files)
    is_named = "c 1.0 kB, not shown: the page has 2.1 kB of images"
    assert named(text) == ["a 1.0 kB", "b 1.0 kB", is_named, "d 100 B"]
    assert text.count("data:image/png") == 3


def test_names_of_images_are_only_text(tmp_path: Path) -> None:
    """They are what the person who wrote the bench called a file."""
    hostile = '"><img src=x onerror=alert(1)>\x1b[2J\u202e' + "long" * 100 + ".png"
    text = page(tmp_path, dict([stored(hostile, MAP)]))
    assert "<img src=x" not in text
    assert "\x1b" not in text
    [shown] = named(text)
    assert shown.startswith("&#34;&gt;&lt;img src=x")
    assert shown.endswith(f".png {len(MAP)} B")
    assert len(shown) < 160


def test_an_image_without_a_name_or_a_file_is_named_by_its_hash(tmp_path: Path) -> None:
    """Runs of earlier versions have no names; a file that cannot be read is as one that is not there."""
    (key, _), old = stored("a", MAP), msgspec.msgpack.encode(["image/png", MAP])
    assert named(page(tmp_path, {key: old})) == [f"{key[:12]}… {len(MAP)} B"]
    assert named(page(tmp_path, {"f" * 64: b"\xc1"})) == ["ffffffffffff… not stored with the run"]
    assert named(page(tmp_path, {}, images=["e" * 64])) == ["eeeeeeeeeeee… not stored with the run"]


def test_an_image_that_a_message_links_to_is_text(tmp_path: Path) -> None:
    """Nothing is loaded from elsewhere."""
    remote = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    messages = [{"role": "user", "content": [remote]}, {"role": "user", "content": "And now?"}]
    text = page(tmp_path, {}, messages=messages)
    assert "https://example.com/cat.png" in text
    assert "<img" not in text


def test_images_are_stored_with_the_names_of_their_files() -> None:
    """Without the folder; the first of several files with the same bytes gives its name."""
    images = Images(lambda _place, _path, _most: MAP)
    [first, second] = images.add(["pictures/map.png", "copy.png"], Place("bench.yaml"))
    assert first == second
    assert msgspec.msgpack.decode(images.files[first], type=Image) == Image("image/png", MAP, "map.png")
