"""Lists the items of a file by the names that lists, pages and `--case` use, for `validate --list`."""

import msgspec
from msgspec import Struct

from producer import kinds
from producer.api import Plan
from producer.cli.output import printable
from producer.cli.session import Session
from producer.item_names import name_of
from producer.service_documents import ListDocument, ListedItem
from shared.errors import UsageError
from shared.kinds import Storage


class _Tagged(Struct):
    tags: tuple[str, ...] = ()


_tagged = msgspec.json.Decoder(_Tagged)


def print_items(session: Session, asked: Plan) -> int:
    """Checks a file, and prints its items instead of their number.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
        UsageError: its items are turns of threads, which have no names of their own.
    """
    kind, source = asked.kind, asked.source
    if kind.storage is not Storage.LIST:
        raise UsageError(f"{source.name}: {kind.name} cannot be listed")
    items = []
    for chunk in kinds.of(kind).load(source, asked.options).chunks:
        for index, payload in chunk.payloads.items():
            named = name_of(kind, int(index), payload)
            tags = _tagged.decode(payload).tags
            items.append(ListedItem(f"{kind.noun}-{index}", named.own, named.label, tags))
    if session.options.json:
        document = ListDocument(file=source.name, kind=kind.name, items=tuple(items))
        session.output.document(document)
    else:
        session.output.data("\n".join(printable(each.name) for each in items))
    return 0
