"""Listening for a client that leaves takes nothing from whoever reads the body."""

import asyncio

from dartboard.api.guards.timeouts import Client

EMPTY = {"type": "http.request", "body": b"", "more_body": False}
GONE = {"type": "http.disconnect"}


def client_of(messages, headers=()):
    queue = asyncio.Queue()
    for message in messages:
        queue.put_nowait(message)
    return Client({"type": "http", "headers": list(headers)}, queue.get), queue


async def turn():
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_request_without_a_body_can_still_be_read_afterwards():
    async def main():
        client, queue = client_of([EMPTY])
        leaving = asyncio.create_task(client.gone())
        await turn()
        assert not leaving.done()
        assert await client.receive() == EMPTY
        queue.put_nowait(GONE)
        await leaving
        assert await client.receive() == GONE

    asyncio.run(main())


def test_a_body_is_left_to_its_reader():
    async def main():
        first = {"type": "http.request", "body": b"a", "more_body": True}
        last = {"type": "http.request", "body": b"b"}
        client, queue = client_of([first, last], [(b"transfer-encoding", b"chunked")])
        leaving = asyncio.create_task(client.gone())
        await turn()
        assert [await client.receive(), await client.receive()] == [first, last]
        await turn()
        assert not leaving.done()
        queue.put_nowait(GONE)
        await leaving

    asyncio.run(main())


def test_who_leaves_while_the_body_is_read_has_left():
    async def main():
        client, _ = client_of([GONE], [(b"content-length", b"5")])
        assert await client.receive() == GONE
        await client.gone()

    asyncio.run(main())
