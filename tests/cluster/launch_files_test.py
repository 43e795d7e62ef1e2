"""configs/launch/: the files shipped for launchers are valid."""
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


if __name__ == "__main__":
    unittest.main()
