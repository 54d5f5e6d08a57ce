#!/bin/sh
# All checks that need CUDA, at most 6 minutes: bits of recorded steps, the contract, speed against the plain loop.
#     sh tests/benchmarks/gpu_checks.sh [OUT]      prints, and writes what it prints into a folder
cd "$(dirname "$0")/../.." || exit 1
out=${1:-.}
export PYTHONPATH="$PWD" FEDSIM_GPU_CHECKS=1
failed=0
check() {
    seconds=$1 name=$2
    shift 2
    timeout "$seconds" "$@" >"$out/$name.txt" 2>&1 || failed=1
    echo "== $name"
    tail -n 40 "$out/$name.txt"
}
check 60 found python -c "import torch; print(torch.__version__, torch.cuda.get_device_name())"
check 130 bits python -m pytest -n 0 -q -m "" tests/learning/executors/test_graphs.py
for job in J1 J2 J3 J4 R18; do
    check 34 "speed-$job" python tests/benchmarks/updates_per_second.py --device cuda --job $job --precision float32 --repeats 2
done
exit $failed
