"""configs/launch/: the files shipped for launchers are valid."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import wheels  # noqa: E402

yaml = wheels.module("yaml")

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs/launch")


class LaunchFiles(unittest.TestCase):
    def test_the_batch_script_is_a_shell_script(self):
        path = os.path.join(FOLDER, "assay.sbatch")
        done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(path) as file:
            lines = file.read().splitlines()
        flags = [line.split()[1] for line in lines if line.startswith("#SBATCH")]
        self.assertIn("--requeue", flags)
        self.assertTrue(any(flag.startswith("--signal=B:TERM@") for flag in flags), flags)
        # Slurm reads no flag after the first command.
        first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
        self.assertFalse([line for line in lines[first:] if line.startswith("#SBATCH")])

    @unittest.skipUnless(yaml, "no yaml for this Python")
    def test_the_manifest_is_one_indexed_job_with_a_service_and_a_secret(self):
        with open(os.path.join(FOLDER, "kubernetes.yaml")) as file:
            parts = {part["kind"]: part for part in yaml.safe_load_all(file)}
        self.assertEqual(set(parts), {"Service", "Secret", "Job"})
        service, secret, job = parts["Service"], parts["Secret"], parts["Job"]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        spec = job["spec"]
        pod = spec["template"]["spec"]
        self.assertEqual(spec["completionMode"], "Indexed")
        self.assertEqual(spec["completions"], spec["parallelism"])
        self.assertEqual(pod["subdomain"], service["metadata"]["name"])
        self.assertEqual(service["spec"]["selector"], {"job-name": job["metadata"]["name"]})
        env = {one["name"]: one for one in pod["containers"][0]["env"]}
        self.assertEqual(int(env["ASSAY_SIZE"]["value"]), spec["completions"])
        # Pod 0 of an Indexed Job is JOB-0, and the service's name is its domain.
        self.assertEqual(env["ASSAY_SUPERVISOR"]["value"].rsplit(":", 1)[0],
                         f"{job['metadata']['name']}-0.{pod['subdomain']}")
        reference = env["ASSAY_TOKEN"]["valueFrom"]["secretKeyRef"]
        self.assertEqual(reference["name"], secret["metadata"]["name"])
        self.assertIn(reference["key"], secret["stringData"])
        self.assertEqual({mount["name"] for mount in pod["containers"][0]["volumeMounts"]},
                         {volume["name"] for volume in pod["volumes"]})

    def test_the_scripts_of_the_gate_are_shell_scripts(self):
        for name in ("slurm-prolog.sh", "slurm-epilog.sh", "slurm-health.sh", "assay-gated.sbatch"):
            path = os.path.join(FOLDER, name)
            self.assertTrue(name.endswith(".sbatch") or os.access(path, os.X_OK), name)
            done = subprocess.run(["bash", "-n", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(os.path.join(FOLDER, "slurm-prolog.sh")) as file:
            commands = [line for line in file.read().splitlines() if not line.startswith("#")]
        self.assertNotRegex("\n".join(commands), r"\b(scontrol|sinfo|squeue|sbatch|srun)\b")

    @unittest.skipUnless(yaml, "no yaml for this Python")
    def test_the_pod_asks_for_the_same_gpus_in_its_gate(self):
        with open(os.path.join(FOLDER, "kubernetes-gate.yaml")) as file:
            spec = yaml.safe_load(file)["spec"]
        gate, = spec["initContainers"]
        self.assertEqual(gate["resources"]["limits"], spec["containers"][0]["resources"]["limits"])
        self.assertLessEqual({mount["name"] for mount in gate["volumeMounts"]}, {one["name"] for one in spec["volumes"]})
        shell = gate["command"][2].replace("/dev/termination-log", "/dev/null")
        for code, starts in ((0, True), (1, False), (2, True)):
            done = subprocess.run(["sh", "-c", f"assay() {{ return {code}; }}; {shell}"])
            self.assertEqual(done.returncode == 0, starts)

    def test_the_monitor_of_node_problem_detector_is_complete(self):
        with open(os.path.join(FOLDER, "node-problem-detector-assay.json")) as file:
            monitor = json.load(file)
        rule, = monitor["rules"]
        self.assertEqual(monitor["plugin"], "custom")
        self.assertEqual([rule["condition"]], [one["type"] for one in monitor["conditions"]])
        self.assertEqual(rule["args"][-2:], ["--exit-style", "npd"])
        self.assertLess(float(rule["args"][rule["args"].index("--budget") + 1][:-1]), float(rule["timeout"][:-1]))


if __name__ == "__main__":
    unittest.main()
