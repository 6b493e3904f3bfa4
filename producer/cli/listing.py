"""Lists the items of a file by the names that lists, pages and `--case` use, for `validate --list`."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from producer import kinds
from producer.cli.item_names import name_of
from producer.cli.output import printable
from producer.cli.session import Session
from producer.cli.submission import Submission
from producer.documents import SCHEMA_VERSION, Exit, Part, Version, as_json
from shared.errors import UsageError
from shared.kinds import Storage, all_kinds


class ListedItem(Part):
    """An item of a file."""

    item_id: Annotated[str, Meta(description="As in the results of a run of the whole file.")]
    id: Annotated[str, Meta(description="The id that it has in the file, which several items may share.")]
    name: Annotated[str, Meta(description="The id, extended by what distinguishes the item.")]
    tags: list[str]


class ListDocument(Struct):
    """What validate --list prints with --json: the items of a file.

    A run of the whole file has them in this order.
    """

    file: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": [kind.name for kind in all_kinds()]})]
    items: list[ListedItem]
    schema_version: Version = SCHEMA_VERSION
    exit: Exit = 0


class _Tagged(Struct):
    tags: list[str] = []


_tagged = msgspec.json.Decoder(_Tagged)


def print_items(session: Session, submission: Submission) -> int:
    """Checks a file, and prints its items instead of their number.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
        UsageError: its items are turns of threads, which have no names of their own.
    """
    kind = submission.kind()
    if kind.storage is not Storage.LIST:
        raise UsageError(f"{submission.source.name}: {kind.name} cannot be listed")
    items = []
    for chunk in kinds.of(kind).load(submission.source, submission.options()).chunks:
        for index, payload in chunk.payloads.items():
            named = name_of(kind, int(index), payload)
            tags = _tagged.decode(payload).tags
            items.append(ListedItem(f"{kind.noun}-{index}", named.own, named.label, tags))
    if session.options.json:
        session.output.data(as_json(ListDocument(submission.source.name, kind.name, items)))
    else:
        session.output.data("\n".join(printable(each.name) for each in items))
    return 0
