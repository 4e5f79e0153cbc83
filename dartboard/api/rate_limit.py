"""How often one client may ask: a token bucket for each, in bounded memory.

The package ``limits`` counts in windows, and keeps as many clients as come.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from threading import Lock


class RateLimits:
    """A token bucket for each client, in bounded memory: the longest unused are forgotten first.

    A bucket holds what its rate allows in a second, at least ``burst``, and a request takes one.
    """

    def __init__(self, *, size: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._clock = size, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, client: str, rate: float, burst: int = 1) -> float:
        """Count one request of ``client``: 0, or the seconds after which the next one may come."""
        now, most = self._clock(), float(max(burst, math.ceil(rate)))
        with self._lock:
            tokens, since = self._buckets.pop(client, (most, now))
            tokens = min(most, tokens + max(0.0, now - since) * rate)
            allowed = tokens >= 1.0
            self._buckets[client] = (tokens - allowed, now)
            while len(self._buckets) > self._size:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - tokens) / rate


def client_address(host: str | None) -> str:
    """One name for one client: an IPv4 address, or the /64 network that an IPv6 host owns as a whole."""
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> 64 << 64)}/64"
