#!/bin/bash -p
# Slurm's epilog: did the job leave a fault behind?   slurm.conf: Epilog=/etc/slurm/slurm-epilog.sh
# It is the prolog, which lies beside it, with a budget of its own. Exit code 1 makes Slurm drain the node, so that the fault
# is seen by no other job; slurm-health.sh gives the reason.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset -v "${!LD_@}" GLIBC_TUNABLES TMPDIR BASH_ENV ENV
export ASSAY_GATE_BUDGET=${ASSAY_EPILOG_BUDGET:-10s}
exec "$(dirname -- "$(readlink -f -- "$0")")/slurm-prolog.sh"
