"""How often one client may ask: a token bucket for each, in bounded memory.

A bucket holds ``burst`` tokens and gets ``rate`` new ones a second; a request takes one or is refused. What
is left is told in the headers of the IETF draft "RateLimit header fields for HTTP". The package ``limits``
counts windows instead of tokens, keeps as many clients as come, and would be one more dependency.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a request may go on, and what its client should know."""

    allowed: bool
    limit: int
    remaining: int
    reset: int
    """Seconds until the bucket is full again."""
    window: int
    """Seconds in which an empty bucket fills."""
    retry_after: int = 0

    def headers(self) -> dict[str, str]:
        """The draft's fields, and ``Retry-After`` where the request was refused."""
        fields = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset),
            "RateLimit-Policy": f"{self.limit};w={self.window}",
        }
        return fields if self.allowed else {**fields, "Retry-After": str(self.retry_after)}


class RateLimits:
    """The buckets of many clients; the ones that were longest unused are forgotten first.

    A forgotten client begins with a full bucket, so ``size`` also bounds what somebody with many addresses
    can gain: one burst for each.
    """

    def __init__(self, *, size: int = 10_000, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def take(self, client: str, *, rate: float, burst: int) -> Verdict:
        """Count one request of ``client`` against ``rate`` (> 0, a second) and ``burst``."""
        now = self._clock()
        with self._lock:
            tokens, since = self._buckets.pop(client, (float(burst), now))
            tokens = min(float(burst), tokens + max(0.0, now - since) * rate)
            allowed = tokens >= 1.0
            tokens -= allowed
            self._buckets[client] = (tokens, now)
            while len(self._buckets) > self._size:
                self._buckets.popitem(last=False)
        return Verdict(
            allowed=allowed,
            limit=burst,
            remaining=int(tokens),
            reset=math.ceil((burst - tokens) / rate),
            window=math.ceil(burst / rate),
            retry_after=0 if allowed else max(1, math.ceil((1.0 - tokens) / rate)),
        )

    def __len__(self) -> int:
        return len(self._buckets)


def usual_burst(rate: float) -> int:
    """Requests at once where nobody said how many: what the rate allows in a second, and at least one."""
    return max(1, math.ceil(rate))


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
