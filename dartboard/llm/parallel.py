"""Many calls at once: parallel within limits, results in the order of the items.

Whatever ends a run early (the budget, an endpoint that is down, Ctrl-C), calls under way are waited for,
since they are paid, and are in the journal before the error is raised.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event, Lock
from typing import TypeVar

from dartboard.deadline import deadline
from dartboard.errors import BudgetError, DeadlineError, EndpointError
from dartboard.llm.call_limits import CallLimiter, limited_by
from dartboard.llm.errors import NoAnswersError, RefusedError

Item = TypeVar("Item")
Result = TypeVar("Result")

Listener = Callable[[int, int], None]
"""Hears how many items are done, and of how many."""


def run(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    limiter: CallLimiter,
    listen: Listener = lambda done, total: None,
) -> list[Result]:
    """What ``function`` gives for each item, in order.

    An item whose endpoint fails for good is left out and the others go on; at the end an error says how many
    are missing. A refused key, a used-up budget, or too many failures in a row
    (:meth:`~dartboard.llm.call_limits.CallLimiter.record`) end the run.

    Args:
        function: is called from several threads, within the limits.
        items: what it is called with.
        limiter: how many calls at once and a minute, and the budget, which several runs may share.
        listen: hears of every result.

    Raises:
        BudgetError: the budget is used up.
        EndpointError: calls failed; what the others brought is in the journal.
    """
    cancelled, lock = Event(), Lock()
    ended: list[Exception] = []
    failed: list[EndpointError] = []
    done = 0

    def one(number: int) -> list[Result]:
        nonlocal done
        if ended or cancelled.is_set():
            return []
        try:
            with limited_by(limiter), deadline(float("inf"), cancelled=cancelled):
                result = function(items[number])
        except DeadlineError:
            if not cancelled.is_set():
                raise
            return []
        except (BudgetError, RefusedError, NoAnswersError) as error:
            ended.append(error)
            return []
        except EndpointError as error:
            failed.append(error)
            try:
                limiter.record("the endpoint", str(number), str(error))
            except NoAnswersError as last:
                ended.append(last)
            return []
        with lock:
            done += 1
            listen(done, len(items))
        return [result]

    pool = ThreadPoolExecutor(limiter.limits.concurrency, thread_name_prefix="dartboard-call")
    try:
        futures = [pool.submit(copy_context().run, one, number) for number in range(len(items))]
        results = [result for future in futures for result in future.result()]
    finally:
        cancelled.set()
        pool.shutdown(wait=True, cancel_futures=True)
    kept = f"{done} of {len(items)} are done; resume to ask for the missing ones"
    if ended:
        raise type(ended[0])(f"{ended[0]} ({kept})")
    if failed:
        raise EndpointError(f"{len(failed)} calls failed, the first with: {failed[0]} ({kept})")
    return results
