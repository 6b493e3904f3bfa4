"""Lists the items of a file by the names that lists, pages and `--only` use, for `validate --list`."""

from itertools import tee

import msgspec
from msgspec import Struct

from producer.api import Plan, inputs_of
from producer.cli.output import printable
from producer.cli.session import Session
from producer.item_names import numbered
from producer.service_documents import ListDocument, ListedItem
from shared.contracts.case_run import Quorum
from shared.errors import UsageError
from shared.kinds import Storage


class _Facts(Struct):
    tags: tuple[str, ...] = ()
    quorum: Quorum | None = None


_facts = msgspec.json.Decoder(_Facts)


def print_items(session: Session, asked: Plan) -> int:
    """Checks a file, and prints its items instead of their number.

    Raises:
        InputError: the file cannot be read, or breaks its contract.
        UsageError: its items are turns of threads, which have no names of their own.
    """
    kind, source = asked.kind, asked.source
    if kind.storage is not Storage.LIST:
        raise UsageError(f"{source.name}: {kind.name} cannot be listed")
    inputs, again = tee(inputs_of(source, kind, asked.options))
    items = []
    for name, (index, payload) in zip(numbered(kind, inputs), again, strict=True):
        facts = _facts.decode(payload)
        needed = facts.quorum.needed if facts.quorum else None
        items.append(ListedItem(f"{kind.noun}-{index}", name.own, name.label, name.asked, needed, facts.tags))
    if session.options.json:
        document = ListDocument(file=source.name, kind=kind.name, items=tuple(items))
        session.output.document(document)
    else:
        session.output.data("\n".join(printable(each.name) for each in items))
    return 0
