"""Starts Flower with a list of tasks that fits a screen: names open their task, and long cells are cut.

Flower's own list links names to a filter and needs a column of 36 characters to open a task. Its pages are
made by one script, which is served here with ours behind it.

    python -m worker.flower --address=127.0.0.1 --port=5555 …    as `celery -A worker.app flower …`

With `--stop-on-eof` in front it ends with its standard input, and so with the process that started it.
"""

import logging
import os
import sys
from pathlib import Path
from typing import Final

from worker.parent_watch import on_stdin_end

SCRIPT: Final = r"""
(function () {
    var style = document.createElement('style');
    style.textContent =
        '#tasks-table td { max-width: 10.5rem; overflow: hidden !important; text-overflow: ellipsis; ' +
        'white-space: nowrap; padding-left: .35rem; padding-right: .35rem; font-size: .76rem }' +
        '#tasks-table td:nth-child(3) { max-width: 13.5rem }' +
        '#tasks-table td:nth-child(4) { max-width: 19rem }' +
        '#tasks-table td:nth-child(7) { max-width: 10.5rem }' +
        '.tasks-table-card .dataTables_scrollHead th { padding-left: .4rem }';
    document.head.appendChild(style);
    $(document).on('draw.dt', function (event) {
        if (event.target.id !== 'tasks-table') {
            return;
        }
        $(event.target).find('tbody tr[id]').each(function () {
            var link = $(this).find('td:first-child a'),
                place = (link.attr('href') || '').replace(/\/tasks\?.*$/, '');
            link.attr('href', place + '/task/' + encodeURIComponent(this.id));
            $(this).find('td').each(function () {
                this.title = this.textContent.trim();
            });
        });
    });
}());
"""
"""Runs after Flower's own, on every page."""
NAME: Final = "js/flower.js"
STOP_ON_EOF: Final = "--stop-on-eof"


def _is_news(record: logging.LogRecord) -> bool:
    """Leaves out the list of tasks that Flower logs at its start: its pages have them."""
    return not str(record.msg).startswith("Registered tasks")


def main() -> None:
    """Starts Flower; all further arguments are its own."""
    arguments = sys.argv[1:]
    if arguments[:1] == [STOP_ON_EOF]:
        del arguments[0]
        on_stdin_end(lambda: os._exit(0))  # Flower keeps nothing, and its loop may be busy
    from celery.__main__ import main as celery  # noqa: PLC0415 - after the settings are changed
    from flower import urls  # noqa: PLC0415 - nothing else needs it
    from tornado.web import StaticFileHandler  # noqa: PLC0415 - same

    script = Path(urls.settings["static_path"], NAME).read_text(encoding="utf-8") + SCRIPT

    class Files(StaticFileHandler):
        """Serves Flower's files, its script with ours behind it."""

        async def get(self, path: str, include_body: bool = True) -> None:  # noqa: FBT001, FBT002 - as it is there
            """Sends a file."""
            if path != NAME:
                await super().get(path, include_body)
                return
            self.set_header("Content-Type", "text/javascript; charset=utf-8")
            self.set_header("Cache-Control", "no-cache")  # its name holds the version of Flower's part alone
            self.write(script)

        def compute_etag(self) -> None:
            """Gives files none: their addresses hold their version."""

    urls.settings["static_handler_class"] = Files
    logging.getLogger("flower.command").addFilter(_is_news)
    sys.argv = ["celery", "-A", "worker.app", "flower", *arguments]
    sys.exit(celery())


if __name__ == "__main__":
    main()
