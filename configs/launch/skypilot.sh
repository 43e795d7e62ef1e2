#!/bin/bash
# A plan on one machine of each type, with SkyPilot; the runs are copied to runs/TYPE and the machines are ended:
#   configs/launch/skypilot.sh gpu-quick H100:8 H200:8 A100-80GB:8
# Then: assay report runs/h100-8 runs/h200-8 runs/a100-80gb-8. A type with a dot is an instance type: p5.48xlarge.
set -u
plan=${1:?usage: skypilot.sh PLAN TYPE...}
shift
task=$(dirname "$0")/skypilot.yaml

measure() {
  name=$(echo "$1" | tr 'A-Z:.' 'a-z--')
  case $1 in *.*) type=--instance-type ;; *) type=--gpus ;; esac
  sky launch --yes -c "assay-$name" "$type" "$1" --env PLAN="$plan" "$task"; code=$?
  mkdir -p runs
  # Also of a run that failed: what was measured before is in it.
  rsync -a "assay-$name:run/" "runs/$name/" || code=4
  sky down --yes "assay-$name" || echo "skypilot.sh: assay-$name was not ended and still costs: sky down assay-$name" >&2
  return "$code"
}

jobs=()
for type in "$@"; do measure "$type" & jobs+=($!); done
worst=0
for job in "${jobs[@]}"; do wait "$job" || worst=$?; done
exit "$worst"
