"""assay run on several hosts, here agents on this machine under other names, started by remote shell, by environment
variables or by mpirun: what is refused before the first case, and what happens if a part dies."""
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from host_names import HOST_NAME_PREFIX, with_mpi  # noqa: E402
from hosts import HostsCase, free_port  # noqa: E402
from testbed import BINARY, alive, main, wait_for  # noqa: E402


class Proxy:
    """Relays between an agent and its supervisor and changes the agent's messages, line by line. It knows the token."""

    def __init__(self, port, token, change):
        self.relay = subprocess.Popen([os.environ["ASSAY_CHANNEL_RELAY"], str(port), token], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.relay.stdout.readline())
        self.thread = threading.Thread(target=self.pass_on, args=(change,), daemon=True)
        self.thread.start()

    def pass_on(self, change):
        try:
            for line in self.relay.stdout:
                self.relay.stdin.write(json.dumps(change(json.loads(line))) + "\n")
                self.relay.stdin.flush()
        except OSError:
            pass

    def close(self):
        self.relay.kill()
        self.relay.wait()
        self.thread.join()
        self.relay.stdin.close()
        self.relay.stdout.close()


class Hosts(HostsCase):
    def run_with_agent(self, change=None, agent_words=None, **more):
        """Runs on two hosts, the second behind a proxy; the results of supervisor and agent."""
        port = free_port()
        proxy = Proxy(port, self.rank(1, 2, port)["ASSAY_TOKEN"], change) if change else None
        words = [*self.probe("ok"), "--ranks", "2", "--trace"]
        env = {**os.environ, **self.rank(1, 2, proxy.port if proxy else port, **more)}
        agent = subprocess.Popen([*HOST_NAME_PREFIX, *self.command(*(agent_words or words))], cwd=self.folder, text=True, env=env,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(agent)
        done = self.run_assay(*words, "--out", self.out, env=self.rank(0, 2, port, **more))
        agent.stderr_text = agent.communicate(timeout=60)[1]
        if proxy:
            proxy.close()
        return done, agent

    @with_mpi
    def test_world_sizes_over_hosts_by_remote_shell(self):
        done = self.run_assay(*self.probe("ok"), "--ranks", "1,2,3", "--out", self.out,
                              env=self.hosts("one", "two slots=2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        ranks = {r["world"]["ranks"]: [rank["host"] for rank in r["ranks"]] for r in self.records()}
        self.assertEqual(ranks, {1: ["one"], 2: ["one", "two"], 3: ["one", "two", "two"]})
        whole = self.records()[-1]
        self.assertEqual(whole["world"]["nodes"], 2)
        # Both hosts are this machine, so figures are not comparable.
        self.assertIn("hosts are one machine", whole["flags"])
        self.assertFalse(whole["comparable"])
        self.assertEqual([host["name"] for host in self.run_json()["hosts"]], ["one", "two"])
        self.gone()

    @with_mpi
    def test_settings_of_libraries_reach_the_other_hosts(self):
        settings = {"NCCL_DEBUG": "WARN", "GOMP_SPINCOUNT": "100", "CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "1",
                    "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "CUBLASLT_LOG_LEVEL": "1", "CUDNN_LOGLEVEL_DBG": "0"}
        self.profile("two", "unset " + " ".join(settings), "export CUDA_VISIBLE_DEVICES=1")
        self.start(*self.probe("hang"), "--ranks", "2", "--out", self.out,
                   env=self.hosts("one", "two", CUDA_VISIBLE_DEVICES="0", **settings))

        def ranks():
            """Environments by host; mpirun's command line ends like theirs."""
            all_of = [self.environment_of(pid) for pid in self.marked("testbed worker")]
            found = {own["ASSAY_HOST"]: own for own in all_of if "OMPI_COMM_WORLD_RANK" in own}
            return len(found) == 2 and found
        found = wait_for(ranks, "two ranks")
        for host, visible in (("one", "0"), ("two", "1")):
            self.assertEqual({name: found[host].get(name) for name in settings}, settings, host)
            self.assertEqual(found[host]["CUDA_VISIBLE_DEVICES"], visible, "the host's own")

    @with_mpi
    def test_settings_that_one_host_has_of_its_own_are_seen(self):
        self.profile("two", "export GOMP_SPINCOUNT=100")
        done = self.run_assay(*self.probe("ok"), "--ranks", "2", "--out", self.out, env=self.hosts("one", "two"))
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = self.records()
        self.assertEqual(record["conditions"].get("GOMP_SPINCOUNT"), "not the same on all ranks")
        self.assertIn("GOMP_SPINCOUNT is not the same on all ranks: rank 1 has 100", record["flags"])
        shutil.rmtree(self.out)
        self.profile("two", "export ONEDNN_DEFAULT_FPMATH_MODE=BF16")
        done = self.run_assay(*self.probe("ok"), "--ranks", "2", "--out", self.out, env=self.hosts("one", "two"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("unset ONEDNN_DEFAULT_FPMATH_MODE", self.records()[0]["reason"])

    def test_settings_reach_every_host_that_measures_by_itself(self):
        self.profile("two", "unset GOMP_SPINCOUNT")
        done = self.run_assay(*self.probe("ok"), "--each-host", "--out", self.out, env=self.hosts("one", "two", GOMP_SPINCOUNT="100"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({record["ranks"][0]["host"]: record["conditions"].get("GOMP_SPINCOUNT") for record in self.records()},
                         {"one": "100", "two": "100"})

    @with_mpi
    def test_another_library_path_is_a_finding(self):
        own, other = (":".join(filter(None, (path, os.environ.get("LD_LIBRARY_PATH")))) for path in ("/opt/own", "/opt/other"))
        for path in (own, other):
            shutil.rmtree(self.out, ignore_errors=True)
            self.profile("two", f"export LD_LIBRARY_PATH={path}")
            done = self.run_assay(*self.probe("ok"), "--ranks", "2", "--out", self.out,
                                  env=self.hosts("one", "two", LD_LIBRARY_PATH=own))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([host["library_path"] for host in self.run_json()["hosts"]], [own, path])
            seen = [finding["seen"] for finding in self.run_json()["findings"] if finding["id"] == "library_path"]
            self.assertEqual(seen, [] if path == own else
                             [f"LD_LIBRARY_PATH differs between hosts: {other} on two; {own} on one"])
            self.assertEqual("LD_LIBRARY_PATH differs" in done.stderr, bool(seen), done.stderr)

    @with_mpi
    def test_hosts_by_environment_alone(self):
        done, agent = self.run_with_agent()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(agent.returncode, 0, agent.stderr_text)
        self.assertEqual([rank["host"] for rank in self.records()[0]["ranks"]], ["host0", "host1"])
        self.assertFalse([f for f in self.run_json()["findings"] if f["id"] == "clock"])
        self.gone()

    def refused(self, done, *words):
        self.assertEqual(done.returncode, 4, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.out))
        self.gone()

    def change_hello(self, **members):
        return lambda message: {**message, **members} if message["type"] == "hello" else message

    def test_another_build_is_refused_with_both_versions(self):
        done, agent = self.run_with_agent(self.change_hello(version="9.9.9 (channel 1, build 0)"))
        version = subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout.split()[1]
        self.refused(done, "host1", "9.9.9", version)
        self.assertEqual(agent.returncode, 4)
        self.assertIn("9.9.9", agent.stderr_text)

    def test_another_architecture_is_refused_with_both(self):
        done, _ = self.run_with_agent(self.change_hello(architecture="riscv64"))
        self.refused(done, "host1", "riscv64", os.uname().machine)

    def test_another_plan_is_refused_with_both(self):
        done, agent = self.run_with_agent(agent_words=[*self.probe("ok", "fail"), "--ranks", "2"])
        self.refused(done, "plan mismatch", "host1", "of 1 cases", "of 2 cases")
        self.assertEqual(agent.returncode, 4)

    def test_a_wrong_token_is_refused(self):
        port = free_port()
        agent = self.start(*self.probe("ok"), env=self.rank(1, 2, port, ASSAY_TOKEN="guess"))
        done = self.run_assay(*self.probe("ok"), "--out", self.out, env=self.rank(0, 2, port, ASSAY_LAUNCH_LIMIT="3"))
        agent.communicate(timeout=60)
        self.assertEqual(agent.returncode, 4)
        self.refused(done, "rank 1", "ASSAY_SUPERVISOR")

    @with_mpi
    def test_a_clock_that_differs_is_reported_and_corrected(self):
        ahead = 1000
        done, _ = self.run_with_agent(
            lambda m: {**m, "wall": m["wall"] + ahead * 10**9} if m["type"] == "clock" else m)
        self.assertEqual(done.returncode, 0, done.stderr)
        finding, = [f for f in self.run_json()["findings"] if f["id"] == "clock"]
        self.assertIn("host1", finding["seen"])
        self.assertIn("1000.0 s ahead", finding["seen"])
        self.assertIn("host1", done.stderr)
        # The proxy shifted the clock, so corrected times are early by the same amount.
        with open(os.path.join(self.out, "trace.json")) as file:
            events = json.load(file)["traceEvents"]
        begin = {rank: min(e["ts"] for e in events if e["pid"] == rank and "ts" in e and e.get("ph") == "X")
                 for rank in (0, 1)}
        self.assertAlmostEqual(1e-6 * (begin[0] - begin[1]), ahead, delta=60)

    def test_an_unreachable_host_is_named(self):
        self.unplug("nowhere")
        done = self.run_assay(*self.probe("ok"), "--out", self.out, env=self.hosts("one", "nowhere", "two"))
        self.refused(done, "host nowhere cannot be reached", "No route to host")

    @with_mpi
    def test_output_and_statuses_come_from_other_hosts(self):
        done = self.run_assay(*self.probe("abort", "exit", "ok", rank="1"), "--ranks", "2", "--out", self.out,
                              env=self.hosts("one", "two"))
        self.assertEqual(done.returncode, 4, done.stderr)
        records = self.by_op()
        # Open MPI 5 may report the exit of the rank that lost its peer.
        self.assertRegex(records["abort"]["reason"], r"^rank 1: (killed by SIGABRT|its worker ended in measure)")
        self.assertRegex(records["abort"]["reason"], r"; stderr: last words of rank 1$")
        self.assertIn("last words of rank 1", records["abort"]["log"])
        self.assertRegex(records["exit"]["reason"], r"^rank 1: (ended with code 3|its worker ended) in measure")
        self.assertEqual(records["ok"]["status"], "ok")
        self.gone()

    def hanging(self, *ops, ranks=2):
        process = self.start(*self.probe("hang", *ops), "--ranks", str(ranks), "--out", self.out,
                             env=self.hosts("one", "two"))
        wait_for(lambda: len(self.marked("testbed worker")) >= ranks, "the ranks")
        return process

    @with_mpi
    def test_kill_9_of_the_supervisor_leaves_nothing_on_any_host(self):
        process = self.hanging()
        process.send_signal(signal.SIGKILL)
        self.gone()

    @with_mpi
    def test_kill_9_of_an_agent_loses_the_case_and_names_its_host(self):
        process = self.hanging("ok")
        agents = {pid: self.host_of(pid) for pid in self.marked("testbed agent")}
        victim, = [pid for pid, host in agents.items() if host == "two"]
        os.kill(victim, signal.SIGKILL)
        error = process.communicate(timeout=90)[1]
        self.assertEqual(process.returncode, 4, error)
        self.assertIn("host two is lost", self.by_op()["hang"]["reason"])
        self.assertEqual(self.by_op()["ok"]["status"], "ok")
        self.gone()

    def test_a_single_rank_on_another_host_ends_with_its_agent(self):
        process = self.hanging(ranks=1)
        rank, = wait_for(lambda: self.marked("testbed worker"), "the rank")
        agent, = [pid for pid in self.marked("testbed agent") if self.host_of(pid) == "one"]
        os.kill(agent, signal.SIGKILL)
        wait_for(lambda: not alive([rank]), "the end of the rank")
        process.communicate(timeout=90)
        self.assertIn("host one is lost", self.by_op()["hang"]["reason"])
        self.gone()

    @with_mpi
    def test_sigint_ends_every_host_and_resume_completes(self):
        process = self.hanging("ok")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)
        self.gone()
        done = self.run_assay("--resume", self.out, "--timeout", "3", env=self.hosts("one", "two"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(self.by_op()["ok"]["status"], "ok")
        self.gone()

    @with_mpi
    def test_ranks_of_mpirun_connect_through_mpi(self):
        env = {**os.environ, **self.hosts()}
        del env["OMPI_MCA_orte_default_hostfile"]
        shell = os.path.join(self.folder, "shell")
        with open(shell, "w") as file:
            file.write(f'#!/bin/sh\nexport ASSAY_HOST=$1; shift; exec {shlex.join(HOST_NAME_PREFIX)} sh -c "$*"\n')
        os.chmod(shell, 0o755)
        for name in ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent"):
            env[name] = shell
        env |= {"OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_reachable": "weighted"}  # the hosts share loopback
        done = subprocess.run(["mpirun", "--host", "one:1,two:1", "-n", "2", *self.command(*self.probe("ok")),
                               "--ranks", "2", "--out", self.out], env=env, cwd=self.folder, capture_output=True,
                              text=True, timeout=90)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([rank["host"] for rank in self.records()[0]["ranks"]], ["one", "two"])
        self.gone()


if __name__ == "__main__":
    main()
