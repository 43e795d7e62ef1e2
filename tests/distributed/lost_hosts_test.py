"""Hosts lost in the middle of a run: only the cases that need them fail, and hosts that come back are used again."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from host_names import HOST_NAME_PREFIX, with_mpi  # noqa: E402
from hosts import HostsCase, free_port  # noqa: E402
from testbed import main, wait_for  # noqa: E402


@with_mpi
class LostHosts(HostsCase):
    def by_world(self):
        """The last record by (ranks, op)."""
        return {(r["world"]["ranks"], r["params"]["op"]): r for r in self.records()}

    def kill_agent(self, host, ranks, for_good=False):
        """Kills the agent once this many ranks are at work."""
        wait_for(lambda: len(self.marked("testbed worker")) >= ranks, "the ranks")
        if for_good:
            self.unplug(host)
        agent, = [pid for pid in self.marked("testbed agent") if self.host_of(pid) == host]
        os.kill(agent, signal.SIGKILL)

    def test_what_fits_on_the_others_runs_and_the_rest_fails_at_once(self):
        env = self.hosts("one", "two", "three")
        run = self.start(*self.probe("sleep", "ok", "fail", seconds="2"), "--ranks", "1,2,3", "--out", self.out, env=env)
        self.kill_agent("one", 1, for_good=True)
        error = run.communicate(timeout=90)[1]
        self.assertEqual(run.returncode, 1, error)   # a failed check outranks a broken case
        records = self.by_world()
        self.assertEqual(len(self.records()), 9)
        status = {work: record["status"] for work, record in records.items()}
        self.assertEqual(status, {(1, "sleep"): "error", (1, "ok"): "ok", (1, "fail"): "failed",
                                  (2, "sleep"): "ok", (2, "ok"): "ok", (2, "fail"): "failed",
                                  (3, "sleep"): "error", (3, "ok"): "error", (3, "fail"): "error"})
        self.assertIn("host one is lost", records[1, "sleep"]["reason"])
        self.assertGreater(records[1, "sleep"]["seconds"], 0)
        self.assertEqual([rank["host"] for rank in records[1, "ok"]["ranks"]], ["two"])
        self.assertEqual([rank["host"] for rank in records[2, "ok"]["ranks"]], ["two", "three"])
        for op in ("sleep", "ok", "fail"):
            record = records[3, op]
            self.assertIn("host one is lost", record["reason"])
            self.assertIn("No route to host", record["reason"])
            self.assertIn("no room for 3 ranks on 3 hosts", record["reason"])
            self.assertEqual(record["world"], {"ranks": 3, "nodes": 3})
        self.gone()

        # Once the host is back, the rest runs.
        self.plug_in()
        before = len(self.records())
        done = self.run_assay("--resume", self.out, env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([(r["world"]["ranks"], r["params"]["op"], r["attempt"]) for r in self.records()[before:]],
                         [(1, "sleep", 2), (3, "sleep", 2), (3, "ok", 2), (3, "fail", 2)])
        self.assertNotIn("error", [record["status"] for record in self.by_world().values()])
        self.gone()

    def test_a_reachable_host_loses_one_case(self):
        run = self.start(*self.probe("sleep", "ok", seconds="2"), "--ranks", "2", "--out", self.out,
                         env=self.hosts("one", "two"))
        self.kill_agent("two", 2)
        error = run.communicate(timeout=90)[1]
        self.assertEqual(run.returncode, 4, error)
        self.assertIn("host two is back", error)
        self.assertEqual({op: r["status"] for (_, op), r in self.by_world().items()}, {"sleep": "error", "ok": "ok"})
        self.gone()

    def serve(self, words, port):
        agent = subprocess.Popen([*HOST_NAME_PREFIX, *self.command(*words)], cwd=self.folder, text=True,
                                 env={**os.environ, **self.rank(1, 2, port)}, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.started.append(agent)
        return agent

    def test_an_agent_that_reconnects_is_used_again(self):
        """As if a scheduler restarted the pod of a rank."""
        words, port = [*self.probe("sleep", "ok", seconds="2"), "--ranks", "2"], free_port()
        self.serve(words, port)
        run = self.start(*words, "--out", self.out, env=self.rank(0, 2, port))
        wait_for(lambda: len(self.marked("testbed worker")) >= 2, "the ranks")
        self.started[0].kill()   # the command that set its host name has become the agent
        wait_for(self.records, "the record of the lost case")
        again = self.serve(words, port)
        error = run.communicate(timeout=90)[1]
        self.assertEqual(run.returncode, 4, error)
        self.assertEqual(again.wait(timeout=30), 0)
        self.assertIn("host host1 is back", error)
        self.assertEqual({op: r["status"] for (_, op), r in self.by_world().items()}, {"sleep": "error", "ok": "ok"})
        self.gone()

    def test_a_run_that_waits_for_a_host_can_be_ended(self):
        words, port = [*self.probe("sleep", "ok", seconds="2"), "--ranks", "2"], free_port()
        agent = self.serve(words, port)
        # Longer than this test, so that only the signal ends the wait.
        run = self.start(*words, "--out", self.out, env=self.rank(0, 2, port, ASSAY_LAUNCH_LIMIT="600"))
        wait_for(lambda: len(self.marked("testbed worker")) >= 2, "the ranks")
        agent.kill()
        wait_for(self.records, "the record of the lost case")
        run.send_signal(signal.SIGTERM)
        error = run.communicate(timeout=90)[1]
        self.assertEqual(run.returncode, 4, error)
        self.assertIn("--resume", error)
        self.assertEqual(len(self.records()), 1)
        self.gone()


if __name__ == "__main__":
    main()
