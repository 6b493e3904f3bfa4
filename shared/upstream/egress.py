"""Decides which hosts and addresses a worker may call; `http_session` checks each connection against it.

    link-local, cloud metadata          never
    the worker's own hosts              always: those in its variables *_BASE_URL and *_API_BASE
    other hosts                         those of PROCTOR_ALLOWED_HOSTS; all, while that is not set
    private and loopback addresses      unless PROCTOR_BLOCK_PRIVATE=1

A name is judged by the addresses that it resolves to at that moment, of which only the judged ones are
called, and each redirect that is followed is judged again.

A proxy (PROCTOR_TRUST_ENV=1) resolves names itself, so what is called through one is judged by its name, and
the proxy by its addresses. Where private addresses are blocked, names are not enough: then only hosts that
somebody has listed are called through a proxy.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from shared.settings import Settings, names_in, variable_of
from shared.upstream.proxies import Proxies, Proxy

if TYPE_CHECKING:
    from yarl import URL

Address = IPv4Address | IPv6Address

METADATA: Final = (
    "169.254.0.0/16 fe80::/10 fd00:ec2::/32 fd20:ce::/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32"
)
"""Link-local networks, and where clouds (AWS, Google, Alibaba, Azure, Oracle) identify a machine."""
_METADATA: Final = tuple(map(ip_network, METADATA.split()))
METADATA_NAMES: Final = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
"""Names that clouds resolve to such an address."""
_NAT64: Final = ip_network("64:ff9b::/96")
_OWN_HOST: Final = ("_BASE_URL", "_API_BASE")
"""What variables that name a host of the worker's own end with."""


DEEPEST: Final = 12
"""Causes of an exception that are looked at."""


class EgressError(Exception):
    """A place may not be called from here; the message has the reason and, where possible, how to allow it.

    No `OSError`: HTTP clients would take it for a connection that failed.
    """


@dataclass(frozen=True)
class EgressPolicy:
    """Which places may be called."""

    allowed: tuple[str, ...] = ()
    """Hosts, or `*.` and the end of hosts; empty: all."""
    own: frozenset[str] = frozenset()
    """The worker's own hosts."""
    is_private_blocked: bool = False
    """Whether private and loopback addresses are only called where they are the worker's own hosts."""
    proxies: Proxies | None = None
    """The proxies that are used; None: no proxy is."""

    @classmethod
    def of(cls, settings: Settings, environment: Mapping[str, str] = os.environ) -> "EgressPolicy":
        """Reads it from settings, and the worker's own hosts from its environment."""
        named = (value for name, value in environment.items() if name.upper().endswith(_OWN_HOST))
        own = frozenset(filter(None, map(_host_of, named)))
        proxies = Proxies(environment) if settings.trust_env else None
        return cls(names_in(settings.allowed_hosts), own, settings.block_private, proxies)

    @cached_property
    def names(self) -> frozenset[str]:
        """The hosts that are allowed by their whole names."""
        return frozenset(host for host in self.allowed if not host.startswith("*."))

    def check_host(self, host: str) -> None:
        """Refuses a host that may not be called, by its name; an address is judged as one.

        Raises:
            EgressError: it may not be.
        """
        name = host.lower().rstrip(".")
        address = address_of(name)
        if address is not None:
            self.check_address(name, address)
        if not self.allowed or name in self.own or name in self.names:
            return
        if any(name.endswith(end[1:]) for end in self.allowed if end.startswith("*.")):
            return
        variable = variable_of("allowed_hosts")
        raise EgressError(f"{name} is none of the hosts that this worker may call; add it to {variable}")

    def proxy_of(self, url: "URL") -> Proxy | None:
        """Finds the proxy that an address is to be called through; None: directly.

        Raises:
            EgressError: it may not be called through one, the proxy may not be called, or there is no such
                thing at the variable's address.
        """
        host = (url.host or "").lower().rstrip(".")
        try:
            proxy = self.proxies.of(url.scheme, host, url.port) if self.proxies else None
        except ValueError as error:
            raise EgressError(str(error)) from None
        if proxy is None:
            return None
        if host in METADATA_NAMES:
            raise EgressError(f"{host} is a metadata address; never called")
        if self.is_private_blocked and not self.allowed and host not in self.own and not address_of(host):
            blocked, allowed = variable_of("block_private"), variable_of("allowed_hosts")
            raise EgressError(
                f"{host} would be looked up by the proxy, so {blocked} cannot hold it to public addresses; "
                f"add it to {allowed}, or to NO_PROXY"
            )
        address = address_of(proxy.host)
        if address is not None:
            self.check_address(proxy.host, address)
        return proxy

    def check_address(self, host: str, address: Address) -> None:
        """Refuses an address that may not be called, in whatever form it is written.

        Raises:
            EgressError: it may not be.
        """
        for each in _meant(address):
            if any(each in network for network in _METADATA):
                raise EgressError(
                    f"{_shown(host, address)} is a link-local or metadata address; never called"
                )
            is_private = not each.is_global or each.is_multicast
            if is_private and self.is_private_blocked and host.lower().rstrip(".") not in self.own:
                raise EgressError(
                    f"{_shown(host, address)} is a private address, which {variable_of('block_private')} "
                    "blocks; allow it in a variable of the worker that ends in _BASE_URL"
                )


def egress_error(error: BaseException) -> EgressError | None:
    """Finds among the causes of an exception that a place may not be called."""
    found: BaseException | None = error
    for _ in range(DEEPEST):
        if found is None or isinstance(found, EgressError):
            return found
        found = getattr(found, "os_error", None) or found.__cause__ or found.__context__
    return None


def _host_of(url: str) -> str:
    """The host in a variable's value: a URL, or a host with or without a port."""
    try:
        return (urlsplit(url if "://" in url else f"//{url}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def address_of(host: str) -> Address | None:
    """The address that a host is; None when it is a name.

    >>> address_of("[::1]"), address_of("localhost"), address_of("0x7f000001")
    (IPv6Address('::1'), None, IPv4Address('127.0.0.1'))
    """
    text = host.strip("[]").partition("%")[0]
    try:
        return ip_address(text)
    except ValueError:
        pass
    try:  # how the C library reads numbers: 127.1, 2130706433, 0x7f000001
        return IPv4Address(socket.inet_aton(text)) if text[:1].isdigit() else None
    except OSError:
        return None


def _meant(address: Address) -> list[Address]:
    """An address, and the IPv4 address that is inside of it.

    >>> _meant(IPv6Address("::ffff:169.254.169.254")), _meant(IPv6Address("64:ff9b::7f00:1"))[1]
    ([IPv4Address('169.254.169.254')], IPv4Address('127.0.0.1'))
    """
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inside = [address.sixtofour, *(address.teredo or ())[1:]]
    if address in _NAT64:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [address, *(each for each in inside if each is not None)]


def _shown(host: str, address: Address) -> str:
    """A host with the address that is meant."""
    return host if address_of(host) is not None else f"{host} ({address})"
