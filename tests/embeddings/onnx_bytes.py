"""Write a one-node ONNX graph by hand, so that no exporter is needed.

Protocol buffers: a field is ``number << 3 | kind``, kind 0 a varint, kind 2 bytes after their length.
"""

import numpy as np


def lookup_graph(table: np.ndarray, inputs: tuple[str, ...], output: str, rank: int) -> bytes:
    """A graph that answers ``table[input_ids]``; rank 2 states an output without its token axis."""
    node = b"".join([text(1, "table"), text(1, "input_ids"), text(2, output), text(4, "Gather")])
    dims = b"".join(number(1, size) for size in table.shape)
    tensor = dims + number(2, 1) + text(8, "table") + block(9, table.astype("<f4").tobytes())
    shape = ("batch", "tokens", table.shape[1]) if rank == 3 else ("tokens", table.shape[1])
    graph = [block(1, node), text(2, "tiny"), block(5, tensor)]
    graph += [block(11, value(name, 7, ("batch", "tokens") if rank == 3 else ("tokens",))) for name in inputs]
    graph += [block(12, value(output, 1, shape))]
    return number(1, 8) + block(8, number(2, 17)) + block(7, b"".join(graph))


def value(name: str, kind: int, shape: tuple[int | str, ...]) -> bytes:
    dims = [block(1, number(1, size) if isinstance(size, int) else text(2, size)) for size in shape]
    return text(1, name) + block(2, block(1, number(1, kind) + block(2, b"".join(dims))))


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    return block(field, content.encode())
