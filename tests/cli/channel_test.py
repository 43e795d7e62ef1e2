"""Strangers connect to a run's channel: whatever they send, cases finish and the supervisor stays small."""
import json
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from testbed import TestbedCase, main, wait_for, workers  # noqa: E402


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(entry.split("=", 1) for entry in file.read().decode().split("\0") if "=" in entry)
    except OSError:
        return {}


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Stranger(threading.Thread):
    """Sends all kinds of garbage until stopped; keeps up to 300 connections open."""

    def __init__(self, address, token):
        super().__init__(daemon=True)
        self.address = address
        hello = {"type": "hello", "token": token, "rank": 0, "size": 1, "host": "x\033[2J", "pid": 1, "version": "0"}
        second = dict(hello, version=None)
        self.words = [
            b"", b"\n", b"GET / HTTP/1.1\r\n\r\n", b"x" * 10000, b"{}\n" * 1000, b"[" * 4000 + b"\n",
            b"\x16\x03\x01\x00\xff" * 100, b"{\"type\":\"hello\"", b"{\"type\":\"record\",\"record\":{}}\n",
            *[(json.dumps(dict(hello, **change)) + "\n").encode() for change in (
                {"token": "0" * 32}, {"token": ""}, {"token": None}, {"token": 7}, {}, {"rank": 1}, {"rank": -1},
                {"size": 7}, {"rank": 1 << 40})],
            (json.dumps(second) + "\n").encode(),
        ]
        self.stop = threading.Event()
        self.connections = 0

    def run(self):
        held = []
        while not self.stop.is_set():
            for word in self.words:
                try:
                    connection = socket.create_connection(self.address, timeout=0.2)
                    connection.setblocking(False)
                    connection.send(word)
                    self.connections += 1
                except OSError:
                    continue
                if len(held) % 3 == 0:
                    connection.shutdown(socket.SHUT_WR)   # half open
                held.append(connection)
            while len(held) > 300:
                held.pop(0).close()
        for connection in held:
            connection.close()


class FloodedChannel(TestbedCase):
    def test_a_flood_costs_a_few_lines_of_output(self):
        # The first worker connects before the flood starts, the one that replaces the killed worker during it.
        process = self.start(*self.probe("skip", "sleep", "kill", "ok", seconds="1", n="1,2"), "--out", self.out)
        wait_for(self.records, "a record")
        worker = wait_for(lambda: workers(process.pid), "a worker")[0]
        variables = wait_for(lambda: environment(worker), "the worker's environment")
        host, port = variables["ASSAY_SUPERVISOR"].split(":")
        self.assertEqual(host, "127.0.0.1")
        with open("/proc/net/tcp") as file:
            listening = [row.split()[1] for row in file.readlines()[1:] if row.split()[3] == "0A"]
        self.assertEqual([place for place in listening if place.endswith(f":{int(port):04X}")],
                         [f"0100007F:{int(port):04X}"])
        small = resident_bytes(process.pid)
        strangers = [Stranger((host, int(port)), variables["ASSAY_TOKEN"]) for _ in range(2)]
        max_descriptors = 0
        for stranger in strangers:
            stranger.start()
        try:
            while process.poll() is None:
                try:
                    max_descriptors = max(max_descriptors, len(os.listdir(f"/proc/{process.pid}/fd")))
                    large = resident_bytes(process.pid)
                except (OSError, IndexError):
                    break   # the process has ended
                for stranger in strangers:
                    stranger.stop.wait(0.05)
            out, err = process.communicate(timeout=90)
        finally:
            for stranger in strangers:
                stranger.stop.set()
                stranger.join()
        self.assertGreater(sum(stranger.connections for stranger in strangers), 100)
        self.assertEqual(process.returncode, 4, err)   # because of the killed workers
        statuses = [(record["params"]["op"], record["status"]) for record in self.records()]
        self.assertEqual(sorted(statuses), [("kill", "error")] * 2 + [("ok", "ok")] * 2 + [("skip", "skipped")] * 2 +
                         [("sleep", "ok")] * 2, err)
        for record in self.records():
            if record["status"] == "error":
                self.assertIn("SIGKILL", record["reason"])
        self.assertLess(max_descriptors, 250)
        self.assertLess(large - small, 64 << 20)
        complaints = [line for line in err.splitlines() if "channel:" in line]
        self.assertTrue(complaints)
        self.assertLess(len(complaints), 60, "\n".join(complaints))
        self.assertNotIn("\033", err)


if __name__ == "__main__":
    main()
