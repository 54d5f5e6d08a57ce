"""What studies cost beside a plain loop, and how many rounds without learning a core makes.

    python tests/benchmarks/studies.py quickstart   # 60 runs that learn, beside a loop; then the same study once more
    python tests/benchmarks/studies.py timing       # 1,000 runs without learning, beside the time of their events
    python tests/benchmarks/studies.py rounds       # rounds a minute without learning, by network and selector
    python tests/benchmarks/studies.py ray          # a run whose clients are trained on two Ray nodes of this machine

Seconds of processor count all processes. ``--runs`` makes fewer runs; each has a store of its own, empty at first.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fedsim import Scenario
from fedsim.simulation import Simulation

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "scenarios" / "quickstart.toml"
GRID = {"selector.kind": ["pause", "uniform"], "rounds.policy.deadline_s": [0.6, 0.8, 1.0]}
NO_LEARNING = {"kind": "none", "model_bits": 1e5, "samples_per_client": 50}
LOOP = """
import itertools
from fedsim import Scenario, simulate
base, grid = Scenario.load({file!r}), {grid!r}
for seed in range({seeds}):
    for values in itertools.product(*grid.values()):
        simulate(base.replace({{**dict(zip(grid, values)), "seed": seed}}))
"""
SWEEP = "from fedsim import sweep\nsweep({file!r}, {grid!r}, seeds={seeds}, out={out!r}, quiet=True)"
LATENCY = {"kind": "shifted-exponential", "shift_s": 0.05, "scale_s": 0.1}
NETWORKS = {
    "latency": {"network": {"kind": "latency", "downlink": LATENCY, "uplink": LATENCY}},
    "cell without fading": {"network.fading": "none"},
    "cell, Rayleigh in blocks of 20 ms": {},
}


def spent(code: str, store: Path) -> tuple[float, float]:
    """Return the seconds of the clock and of all processors that a program takes in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "FEDSIM_STORE": str(store)}
    before, begun_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)  # noqa: S603
    took_s, after = time.perf_counter() - begun_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quickstart(runs: int, folder: Path) -> None:
    seeds = max(1, runs // 6)
    given = {"file": str(QUICKSTART), "grid": GRID, "seeds": seeds, "out": str(folder / "study")}
    loop = spent(LOOP.format(**given), folder / "loop")
    sweep, again = (spent(SWEEP.format(**given), folder / "sweep") for _ in range(2))
    for name, (wall_s, cpu_s) in {"loop": loop, "sweep": sweep, "again": again}.items():
        print(f"{name:<8}{6 * seeds:>4} runs {wall_s:>8.1f} s, {cpu_s:>8.1f} s of processor")
    wall, cpu = (one / other for one, other in zip(sweep, loop, strict=True))
    print(f"sweep over loop: {cpu:.3f} of the processor time, {wall:.3f} of the wall time")


def timing(runs: int, folder: Path) -> None:
    base = Scenario.load(QUICKSTART).replace({"learning": NO_LEARNING, "rounds.count": 100})
    (folder / "base.toml").write_text(base.to_toml(), encoding="utf-8")
    grid, seeds = {"rounds.policy.deadline_s": [0.6, 1.0]}, max(1, runs // 2)
    given = {"file": str(folder / "base.toml"), "grid": grid, "seeds": seeds, "out": str(folder / "study")}
    wall_s, cpu_s = spent(SWEEP.format(**given), folder / "store")
    lines = (folder / "study" / "index.jsonl").read_text(encoding="utf-8").splitlines()
    events_s = sum(json.loads(line)["events_cpu_s"] for line in lines)
    print(f"{len(lines)} runs of 100 rounds: {wall_s:.1f} s, {cpu_s:.1f} s of processor, {events_s:.1f} s of it events")
    print(f"sweep over events: {cpu_s / events_s:.3f}")


def rounds(count: int, _: Path) -> None:
    for name, changes in NETWORKS.items():
        for kind in ("uniform", "pause"):
            chosen = {"selector": {"kind": kind, "cohort": 10}, "learning": NO_LEARNING, "rounds.count": count}
            simulation = Simulation(Scenario.load(QUICKSTART).replace({**chosen, **changes}))
            begun_s = time.process_time()
            simulation.run()
            a_minute = 60 * count / (time.process_time() - begun_s)
            print(f"{name:<36}{kind:<10}{a_minute:>10,.0f} rounds a minute of processor, cohort of 10")
    assert "torch" not in sys.modules


def ray(count: int, _: Path) -> None:
    from ray.cluster_utils import Cluster

    local = {"optimizer": "sgd", "learning_rate": 0.1, "epochs": 4, "batch_size": 10}
    changes = {"learning.model": {"kind": "mlp", "hidden": [512, 256]}, "learning.local": local, "rounds.count": count}
    scenario = Scenario.load(QUICKSTART).replace({**changes, "rounds.policy": "wait-for-all"})
    scenario = scenario.replace({"selector": {"kind": "uniform", "cohort": 20}})
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    os.environ["RAY_ADDRESS"] = cluster.address
    took_s, tables = {}, {}
    # The first run on the cluster starts its actors, which last until the executor is gone.
    for name, executor, actors in (("sequential", "sequential", 0), ("1 actor", "ray", 1), ("2 actors", "ray", 2)):
        os.environ["FEDSIM_RAY_ACTORS"] = str(actors)
        simulation = Simulation(scenario, executor=executor, store=False)
        begun_s = time.perf_counter()
        tables[name] = simulation.run().tables()
        took_s[name] = time.perf_counter() - begun_s
        ratio = took_s[name] / took_s["sequential"]
        print(f"{name:<12}{20 * count} clients in {took_s[name]:.2f} s, {ratio:.2f} of the sequential executor")
    assert tables["sequential"] == tables["1 actor"] == tables["2 actors"]
    cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = {"quickstart": (quickstart, 60), "timing": (timing, 1000), "rounds": (rounds, 5000), "ray": (ray, 10)}
    parser.add_argument("what", choices=known)
    parser.add_argument("--runs", type=int, default=None, help="or rounds (default: 60, 1000, 5000, 10)")
    given = parser.parse_args()
    measure, usual = known[given.what]
    with tempfile.TemporaryDirectory() as folder:
        measure(given.runs or usual, Path(folder))


if __name__ == "__main__":
    main()
