"""Records how much healthy links differ, for the simulations of slow links (tests/unit/fitness/cluster/slow_links_test.cpp):
the seconds of each message between namespaces, over the median of all, a line each.
usage: ASSAY=.../assay record_noise.py FILE, as root"""
import json
import os
import statistics
import sys

FILE = os.path.abspath(sys.argv.pop(1))
sys.argv[1:] = ["8", "2"]   # hosts, and links of each

import rails_test  # noqa: E402
from cluster_case import main  # noqa: E402
import namespaces  # noqa: E402


class Noise(rails_test.Rails):
    test_one_slow_link_is_a_port = test_a_port_a_host_and_a_way_at_once = None

    def test_record(self):
        self.start_accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out)).communicate(timeout=500)
        with open(os.path.join(self.out, "pairs", "records.jsonl")) as file:
            rails = [rail for line in file for rail in json.loads(line).get("rails", [])]
        seconds = [1 / value for rail in rails for row in rail["values"] for value in row if value]
        usual = statistics.median(seconds)
        with open(FILE, "w") as file:
            file.writelines(f"{one / usual:.4g}\n" for one in seconds)


if __name__ == "__main__":
    main(namespaces.missing())
