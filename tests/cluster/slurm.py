"""A private Slurm: munge, slurmctld and several slurmd on this machine, in one folder, on free ports."""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

PROGRAMS = ["unshare", "munged", "slurmctld", "slurmd", "srun", "sbatch", "scancel", "sinfo", "squeue"]
SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing():
    """Why Slurm cannot run here; None if it can."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=SEARCH)]
    if absent:
        return "not installed: " + ", ".join(absent) + " (slurm-wlm, munge)"
    return None if os.geteuid() == 0 else "slurmd needs root"


def free_ports(count):
    """Distinct ports that are free now."""
    held = []
    try:
        for _ in range(count):
            sock = socket.socket()
            sock.bind(("127.0.0.1", 0))
            held.append(sock)
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


class Slurm:
    """Nodes n1, n2, ..., each with all CPUs of this machine. `more` are further lines of slurm.conf; `topology`, those of
    topology.conf, make it a tree."""

    def __init__(self, nodes, more=(), topology=()):
        self.more = [*more, *(["TopologyPlugin=topology/tree"] if topology else [])]
        self.topology = topology
        self.nodes = [f"n{i + 1}" for i in range(nodes)]
        self.folder = tempfile.mkdtemp(prefix="assay-slurm-")
        self.daemons = []
        os.chmod(self.folder, 0o755)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def _spawn(self, name, words):
        with open(self.path(name + ".out"), "wb") as out:
            self.daemons.append((name, subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                        env=self.environment(), start_new_session=True)))

    def _start(self):
        for name in ("munge", "state", "spool"):
            os.mkdir(self.path(name), 0o755)
        key = self.path("munge", "key")
        with open(key, "wb") as file:
            file.write(os.urandom(128))
        os.chmod(key, 0o400)
        munge = self.path("munge")
        # --force allows a folder below /tmp.
        self._spawn("munged", [shutil.which("munged", path=SEARCH), "--foreground", "--force", "--num-threads=1",
                               f"--key-file={key}", f"--socket={munge}/socket", f"--log-file={munge}/log",
                               f"--pid-file={munge}/pid", f"--seed-file={munge}/seed"])
        self._wait(lambda: os.path.exists(f"{munge}/socket"), "munged")
        controller, *ports = free_ports(1 + len(self.nodes))
        cpus = max(8, len(os.sched_getaffinity(0)))  # perhaps more than there are, which config_overrides allows
        host = socket.gethostname()
        old = self.version() < (23,)
        lines = [
            "ClusterName=assay", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}",
            "SlurmUser=root", "SlurmdUser=root", "AuthType=auth/munge", f"AuthInfo=socket={munge}/socket,cred_expire=5",
            "CredType=cred/munge", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=none",
            "JobAcctGatherType=jobacct_gather/none", "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU",
            f"StateSaveLocation={self.path('state')}", f"SlurmdSpoolDir={self.path('spool')}/%n",
            f"SlurmctldPidFile={self.path('slurmctld.pid')}", f"SlurmdPidFile={self.path('slurmd')}-%n.pid",
            f"SlurmctldLogFile={self.path('slurmctld.log')}", f"SlurmdLogFile={self.path('slurmd')}-%n.log",
            "SlurmdParameters=config_overrides", "ReturnToService=2", "SlurmdTimeout=300", "KillWait=2",
            "FirstJobId=1000", "PropagateResourceLimits=NONE", "SlurmctldDebug=debug2",
        ]
        if old:
            lines += ["SwitchType=switch/none", "AccountingStorageType=accounting_storage/none"]
        for name, port in zip(self.nodes, ports):
            lines.append(f"NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN")
        lines.append(f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP "
                     "OverSubscribe=FORCE:8 OverTimeLimit=0")
        lines += self.more
        with open(self.path("slurm.conf"), "w") as file:
            file.write("\n".join(line for line in lines if line) + "\n")
        if self.topology:
            with open(self.path("topology.conf"), "w") as file:
                file.write("\n".join(self.topology) + "\n")
        self._spawn("slurmctld", [shutil.which("slurmctld", path=SEARCH), "-D", "-c", "-f", self.path("slurm.conf")])
        for name in self.nodes:
            # Its own host name: Open MPI's daemons name their folders by it.
            self._spawn(name, ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name,
                               shutil.which("slurmd", path=SEARCH), "-D", "-N", name, "-f", self.path("slurm.conf")])
        self._wait(self.all_idle, "every node to be idle", 60)

    def all_idle(self):
        done = self.run("sinfo", "-h", "-N", "-o", "%N %t", check=False)
        states = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        return all(states.get(name) == "idle" for name in self.nodes)

    def _wait(self, condition, what, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            for name, process in self.daemons:
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: {self.log_of(name)}")
            if time.monotonic() > end:
                raise RuntimeError(f"waited {seconds} s for {what}: {self.log_of('slurmctld')}")
            time.sleep(0.1)

    def log_of(self, name):
        words = ""
        for file in (f"{name}.out", f"{name}.log", f"slurmd-{name}.log"):
            if os.path.exists(self.path(file)):
                with open(self.path(file), errors="replace") as text:
                    words += text.read()[-1500:]
        return words

    @staticmethod
    def version():
        done = subprocess.run([shutil.which("slurmd", path=SEARCH), "-V"], capture_output=True, text=True)
        words = done.stdout.split()  # "slurm-wlm 22.05.8"
        return tuple(int(part) for part in words[-1].split(".")[:2] if part.isdigit()) if words else (0,)

    def environment(self, **more):
        """The environment of a user of this Slurm, without variables of an outer one."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SRUN"))}
        env["PATH"] = SEARCH
        return {**env, "SLURM_CONF": self.path("slurm.conf"), **more}

    def run(self, *words, check=True, timeout=120, **options):
        done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, errors="replace",
                              env=self.environment(**options.pop("env", {})), **options)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode}: {done.stderr}")
        return done

    def submit(self, script, *flags, cwd, env=None):
        """The number of a batch job whose output goes to out and err in `cwd`."""
        done = self.run("sbatch", "--parsable", "--output=out", "--error=err", *flags, "/dev/stdin", input=script,
                        cwd=cwd, env=env or {})
        return done.stdout.strip().split(";")[0]

    def field(self, job, name):
        """A field of `scontrol show job`; empty once Slurm has forgotten the job."""
        done = self.run("scontrol", "show", "job", "-o", job, check=False)
        for word in done.stdout.split():
            if word.startswith(name + "="):
                return word.split("=")[1]
        return ""

    def node(self, name):
        """The line of `scontrol show node`."""
        return self.run("scontrol", "show", "node", "-o", name).stdout

    def state(self, job):
        """PENDING, RUNNING, COMPLETED, ..."""
        return self.field(job, "JobState")

    def run_seconds(self, job):
        """How long Slurm says the job has run: RunTime is [days-]hours:minutes:seconds."""
        days, _, clock = self.field(job, "RunTime").rpartition("-")
        hours, minutes, seconds = (int(part) for part in clock.split(":"))
        return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds

    def restarts(self, job):
        return int(self.field(job, "Restarts") or 0)

    def await_script_end(self, job, seconds=40):
        """Waits until the controller has logged the end of a script of the job; some versions may not log it."""
        ended = re.compile(rf"complete_batch_script.*JobId={job}\b")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with open(self.path("slurmctld.log"), errors="replace") as log:
                if ended.search(log.read()):
                    return
            time.sleep(0.1)

    def ended(self, job):
        return self.state(job) in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

    def stop(self):
        if os.path.exists(self.path("slurm.conf")) and len(self.daemons) > 1:
            self.run("scancel", "--user=root", "--signal=KILL", check=False, timeout=20)
        # Steps run in their own sessions; slurmstepd ends them on SIGTERM.
        for name, process in reversed(self.daemons):
            if name != "munged":
                process.send_signal(signal.SIGTERM)
        self._reap([process for name, process in self.daemons if name != "munged"])
        for pid in self._step_daemons():
            os.kill(pid, signal.SIGKILL)
        self._reap([process for _, process in self.daemons], signal.SIGTERM)
        self.daemons.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _step_daemons(self):
        """The slurmstepd of this Slurm's nodes, whose environment names its folder."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as comm, open(f"/proc/{pid}/environ", "rb") as environ:
                    if comm.read().startswith("slurmstepd") and self.folder.encode() in environ.read():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    @staticmethod
    def _reap(processes, ask=None):
        if ask:
            for process in processes:
                if process.poll() is None:
                    process.send_signal(ask)
        end = time.monotonic() + 10
        for process in processes:
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
