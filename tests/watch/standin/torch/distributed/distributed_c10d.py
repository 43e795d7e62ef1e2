"""Collectives over TCP by way of rank 0, which answers when every rank has come."""

import os
import pickle
import socket
import struct
import threading

from torch.autograd.profiler import record_function

_connection = _server = None


def _send(connection, value):
    data = pickle.dumps(value)
    connection.sendall(struct.pack("<I", len(data)) + data)


def _read(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise RuntimeError("a rank has gone")
        data += more
    return data


def _receive(connection):
    return pickle.loads(_read(connection, struct.unpack("<I", _read(connection, 4))[0]))


def _serve(listener, world):
    peers = [listener.accept()[0] for _ in range(world)]
    try:
        while True:
            total = [sum(values) for values in zip(*[_receive(peer) for peer in peers])]
            for peer in peers:
                _send(peer, total)
    except RuntimeError:
        pass


def init_process_group(backend="standin"):
    global _connection, _server
    place = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ["MASTER_PORT"]))
    if os.environ["RANK"] == "0":
        listener = socket.create_server(place, backlog=64)
        _server = threading.Thread(target=_serve, args=(listener, int(os.environ["WORLD_SIZE"])), daemon=True)
        _server.start()
    for attempt in range(500):
        try:
            _connection = socket.create_connection(place)
            return
        except OSError:
            import time
            time.sleep(0.02)
    raise RuntimeError("rank 0 does not listen")


def destroy_process_group():
    _connection.close()
    if _server is not None:
        _server.join()   # the others may still wait for its last answer


def is_initialized():
    return _connection is not None


def about():
    return {"backend": "gloo", "rank": int(os.environ["RANK"]), "world_size": int(os.environ["WORLD_SIZE"])}


def _exchange(values):
    with record_function("gloo:all_reduce"):
        _send(_connection, values)
        return _receive(_connection)


class Work:
    def __init__(self, tensors):
        self.tensors = tensors

    def wait(self):
        for tensor, total in zip(self.tensors, _exchange([one.value for one in self.tensors])):
            tensor.value = total


def all_reduce(tensor, async_op=False):
    work = Work([tensor])
    if async_op:
        return work
    work.wait()
    return None


def broadcast(tensor, src=0):
    own = int(os.environ["RANK"]) == src
    tensor.value = _exchange([tensor.value if own else 0.0])[0]


def barrier():
    _exchange([])


def reduce_gradients(parameters):
    """As DDP's reducer: the mean of the gradients, outside of Python's functions."""
    world = int(os.environ["WORLD_SIZE"])
    for parameter, total in zip(parameters, _exchange([one.grad for one in parameters])):
        parameter.grad = total / world
