"""Hosts as network namespaces: each its own addresses and name, joined by veth and one bridge in a namespace of its own.

A remote-shell program replaces ssh: it enters the namespace of the requested host.
"""
import os
import shutil
import signal
import subprocess
import tempfile

SEARCH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

# Like ssh: options, then [USER@]HOST, then words that are joined for a shell there.
REMOTE_SHELL = """#!/bin/sh
echo "$*" >>'{folder}/rsh.log'
while :; do
  case "$1" in
    -o | -l | -p | -i) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=${{1#*@}}
shift
case " {hosts} " in
  *" $host "*) ;;
  *" $host:gone "*) exec sleep 1000 ;;   # a host that drops packets
  *) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255 ;;
esac
[ -e "{folder}/profile.$host" ] && . "{folder}/profile.$host"
exec ip netns exec "{prefix}$host" unshare --uts sh -c 'hostname "$0"; exec sh -c "$1"' "$host" "$*"
"""


def ip(*words, check=True):
    done = subprocess.run(["ip", *words], capture_output=True, text=True, env={**os.environ, "PATH": SEARCH})
    if check and done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done


def is_mounted(place):
    with open("/proc/self/mountinfo") as mounts:
        return any(line.split()[4] == place for line in mounts)


def missing():
    """Why namespaces cannot be used here; None if they can."""
    absent = [name for name in ("ip", "tc", "unshare") if not shutil.which(name, path=SEARCH)]
    if absent:
        return "not installed: " + ", ".join(absent) + " (iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name, place = f"assay{os.getpid()}try", "/run/netns"
    before = is_mounted(place)
    try:
        ip("netns", "add", name)
        try:
            ip("-n", name, "link", "add", "br0", "type", "bridge")
            ip("-n", name, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
        finally:
            ip("netns", "del", name, check=False)
    except RuntimeError as error:
        if not before and is_mounted(place):  # ip leaves it behind, and the folder could not be removed
            subprocess.run(["umount", place], check=False)
        return f"this kernel allows none: {error}"
    return None


class Hosts:
    """Hosts h1, h2, ... with the addresses 10.77.0.1, 10.77.0.2, ... With several links, host h1 has eth1 with 10.78.0.1
    and so on, each number of link with a switch of its own."""

    def __init__(self, count, links=1):
        self.links = range(links)
        self.names = [f"h{i + 1}" for i in range(count)]
        self.prefix = f"assay{os.getpid()}-"
        self.switch = self.prefix + "switch"
        self.folder = tempfile.mkdtemp(prefix="assay-hosts-")
        os.chmod(self.folder, 0o755)
        self.rsh = os.path.join(self.folder, "rsh")
        try:
            self._make()
        except BaseException:
            self.stop()
            raise

    def _make(self):
        ip("netns", "add", self.switch)
        for link in self.links:
            ip("-n", self.switch, "link", "add", f"br{link}", "type", "bridge")
            ip("-n", self.switch, "link", "set", f"br{link}", "up")
        for name in self.names:
            space = self.prefix + name
            ip("netns", "add", space)
            ip("-n", space, "link", "set", "lo", "up")
            for link in self.links:
                own, end = f"eth{link}", name if link == 0 else f"{name}-{link}"
                ip("-n", space, "link", "add", own, "type", "veth", "peer", "name", end, "netns", self.switch)
                ip("-n", self.switch, "link", "set", end, "master", f"br{link}", "up")
                ip("-n", space, "addr", "add", self.address(name, link) + "/24", "dev", own)
                ip("-n", space, "link", "set", own, "up")
            # ip netns exec mounts it over /etc/hosts.
            os.makedirs(self._etc(name))
            with open(os.path.join(self._etc(name), "hosts"), "w") as file:
                file.write("127.0.0.1 localhost\n" + "".join(f"{self.address(other)} {other}\n" for other in self.names))
        with open(self.rsh, "w") as file:
            file.write(REMOTE_SHELL.format(folder=self.folder, prefix=self.prefix, hosts=" ".join(self.names) + " silent:gone"))
        os.chmod(self.rsh, 0o755)

    def _etc(self, name):
        return f"/etc/netns/{self.prefix}{name}"

    def address(self, name, link=0):
        return f"10.{77 + link}.0.{self.names.index(name) + 1}"

    def hostfile(self, *lines):
        """The path of a hostfile with these lines, by default every host."""
        path = os.path.join(self.folder, "hosts.txt")
        with open(path, "w") as file:
            file.write("\n".join(lines or self.names) + "\n")
        return path

    def on(self, name, *words):
        """The command that runs `words` on a host."""
        return ["ip", "netns", "exec", self.prefix + name, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"',
                name, *words]

    def profile(self, name, *lines):
        """Commands of the remote shell on a host before the program: its own environment. Not on the host that asks."""
        with open(os.path.join(self.folder, "profile." + name), "w") as file:
            file.write("\n".join(lines) + "\n")

    def environment(self, **more):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "OMPI", "PRTE", "PMIX"))}
        return {**env, "PATH": SEARCH, "ASSAY_RSH": self.rsh, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}

    def cut(self, name):
        """Takes the host's link down."""
        ip("-n", self.switch, "link", "set", name, "down")

    def restore(self, name):
        ip("-n", self.switch, "link", "set", name, "up")

    def _tc(self, name, *words):
        done = subprocess.run(["ip", "netns", "exec", self.prefix + name, "tc", *words], capture_output=True, text=True,
                              env={**os.environ, "PATH": SEARCH})
        if done.returncode:
            raise RuntimeError(f"tc {' '.join(words)}: {done.stderr.strip()}")

    def slow(self, name, peer, rate, links=None, others="100gbit", burst="64k"):
        """Limits what `name` sends to `peer` to `rate` ("100mbit"), by htb, on all or some links; what it sends to others to
        `others`. What is not sent for a while may follow at once, up to `burst`."""
        for link in self.links if links is None else links:
            dev = f"eth{link}"
            self._tc(name, "qdisc", "replace", "dev", dev, "root", "handle", "1:", "htb", "default", "10")
            self._tc(name, "class", "add", "dev", dev, "parent", "1:", "classid", "1:10", "htb", "rate", others, "burst", burst)
            self._tc(name, "class", "add", "dev", dev, "parent", "1:", "classid", "1:20", "htb", "rate", rate, "burst", burst)
            self._tc(name, "filter", "add", "dev", dev, "protocol", "ip", "parent", "1:", "prio", "1", "u32", "match", "ip",
                     "dst", self.address(peer, link), "flowid", "1:20")

    def slow_host(self, name, rate, links=None, burst="64k"):
        """Limits all that `name` sends to `rate`, on all or some links, after a burst of that size."""
        for link in self.links if links is None else links:
            self._tc(name, "qdisc", "replace", "dev", f"eth{link}", "root", "tbf", "rate", rate, "burst", burst, "latency", "50ms")

    def fast(self, name):
        for link in self.links:
            subprocess.run(["ip", "netns", "exec", self.prefix + name, "tc", "qdisc", "del", "dev", f"eth{link}", "root"],
                           capture_output=True, env={**os.environ, "PATH": SEARCH})

    def processes(self):
        """pid -> command line of the processes on the hosts."""
        found = {}
        for name in self.names:
            for pid in ip("netns", "pids", self.prefix + name, check=False).stdout.split():
                try:
                    with open(f"/proc/{pid}/cmdline", "rb") as file:
                        found[int(pid)] = file.read().replace(b"\0", b" ").decode(errors="replace").strip()
                except OSError:
                    pass
        return {pid: words for pid, words in found.items() if words}

    def stop(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in [*self.names, "switch"]:
            ip("netns", "del", self.prefix + name, check=False)
            shutil.rmtree(self._etc(name), ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
