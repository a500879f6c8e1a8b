"""Do chains move: what features they find, how soon, and whether chains from different starts agree.

    GLFM_DATA=... python benchmarks/mixing.py [--other PYTHON] [--tables ...] [--seeds 8] [--sweeps 600] [--quick]

A seed is one chain from its own start. On tables made from known features the found ones are compared with the true
ones after 25, 50, 100, 200 and 600 sweeps, with the bound of one who knows the weights, and with plain independent
components cut in two. On all tables, R-hat and effective draws per processor second of quantities that do not depend on the
order of features, over all seeds. --other names the interpreter of an environment in which another commit is
installed; it runs the same script on the same tables and seeds.

Results are written after every chain, and what is there is not run again. Traces stay in a folder beside the JSON. A
JSON holds results of one commit (and of one other) only.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import mixing_chain
import mixing_tables

RESULTS = Path(__file__).parent / "results" / "mixing.json"
COMPONENTS = "FastICA"
SEEDS, SWEEPS = 8, 600
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
Line = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Commit:
    """Processes of one commit that wait for the names of tables."""

    def __init__(self, python: str, environment: dict[str, str], jobs: int, folder: str) -> None:
        command = [python, str(Path(__file__).resolve()), "--answer"]
        environment, pipe = {**environment, **ONE_THREAD}, subprocess.PIPE
        self._processes = [
            subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)
            for _ in range(jobs)
        ]
        self._idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()
        for process in self._processes:
            self._idle.put(process)

    def ask(self, **asked: Any) -> Line:
        """Return the answer of a process that has nothing to do."""
        process = self._idle.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
            said = process.stdout.readline()
            return json.loads(said) if said else {"error": f"the process ended ({process.wait()})"}
        except BrokenPipeError:
            return {"error": "the process has ended"}
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.stdin.close()
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


class Results:
    """The JSON and the folder of traces beside it."""

    def __init__(self, path: Path, quick: bool, sweeps: int, anew: bool) -> None:
        self.path, self.folder = path, path.with_name(f"{path.stem}-traces")
        self.folder.mkdir(parents=True, exist_ok=True)
        blank = {"quick": quick, "sweeps": sweeps, "samplers": {}, "tables": {}, "chains": []}
        self.found: dict[str, Any] = blank
        if path.exists() and not anew:
            self.found = json.loads(path.read_text())
            if (self.found["quick"], self.found["sweeps"]) != (quick, sweeps):
                self._refuse(f"has {self.found['sweeps']} sweeps{' of quick tables' * self.found['quick']}")

    def _refuse(self, why: str) -> None:
        raise SystemExit(f"{self.path} {why}: give another --output, or --anew to start anew.")

    def stamp(self, who: str, described: Line) -> None:
        """Note whose results these are; refuse those of other sources than there are."""
        known = self.found["samplers"].get(who)
        if known is not None and known["sources"] != described["sources"]:
            self._refuse(
                f"has results of {known['commit'] or known['sources']} as {who!r}, and this is "
                f"{described['commit'] or described['sources']}"
            )
        self.found["samplers"][who] = described

    def trace(self, table: str, who: str, seed: int) -> Path:
        return self.folder / f"{table}-{who}-{seed}.npz"

    def lines(self, table: str, who: str) -> list[Line]:
        """Return the chains of a table and a sampler by seed."""
        found = [line for line in self.found["chains"] if (line["table"], line["who"]) == (table, who)]
        return sorted(found, key=lambda line: line["seed"])

    def has(self, table: str, who: str, seed: int) -> bool:
        """Whether a chain is there, with its traces."""
        return any(
            line["seed"] == seed
            and (who == COMPONENTS or "failed" in line or self.trace(table, who, seed).exists())
            for line in self.lines(table, who)
        )

    def add(self, line: Line) -> None:
        """Add a chain in place of an earlier one of the same table, sampler and seed."""
        key = (line["table"], line["who"], line["seed"])
        others = [one for one in self.found["chains"] if (one["table"], one["who"], one["seed"]) != key]
        if any(one["table"] == line["table"] and one["digest"] != line["digest"] for one in others):
            self._refuse(f"has results of another table {line['table']!r}")
        self.found["chains"] = [*others, line]
        self.write()

    def write(self) -> None:
        """Write the JSON, at once or not at all."""
        self.found["date"] = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.found, indent=1, sort_keys=True) + "\n")
        part.replace(self.path)


def measure(results: Results, commits: dict[str, Commit], table: str, options: argparse.Namespace) -> int:
    """Run the chains of one table that are not there; return how many failed."""
    failures = 0
    _describe(results, table, options.quick)
    workers = dict(commits)
    if table in mixing_tables.MADE:
        workers[COMPONENTS] = commits["this"]
    for who, commit in workers.items():
        todo = [seed for seed in range(options.seeds) if options.again or not results.has(table, who, seed)]

        def run(seed: int, who: str = who, commit: Commit = commit) -> Line:
            asked = {"table": table, "seed": seed, "sweeps": options.sweeps, "quick": options.quick}
            traces = None if who == COMPONENTS else str(results.trace(table, who, seed))
            return {"table": table, "who": who, "seed": seed, **commit.ask(**asked, traces=traces)}

        with ThreadPoolExecutor(options.jobs) as pool:
            for line in pool.map(run, todo):
                failures += _note(results, line)
        if who != COMPONENTS:
            _judge(results, table, who)
    return failures


def _note(results: Results, line: Line) -> int:
    what = f"{line['table']}, {line['who']}, seed {line['seed']}"
    if "error" in line:
        say(f"{what}: FAILED, {line['error']}")
        return 1
    results.add(line)
    if "failed" in line:
        say(f"{what}: gave up, {line['failed']}")
        return 0
    like = line.get("likeness")
    found = "" if like is None else f", likeness {min(like):.2f} to {max(like):.2f}"
    say(
        f"{what}: {line['features']:.0f} features, {line['large']:.0f} large{found}, {line['sweeps_seconds']:.1f} s"
    )
    return 0


def _describe(results: Results, table: str, quick: bool) -> None:
    """Note the bound of a table whose features are known."""
    about = results.found["tables"].setdefault(table, {})
    if table in mixing_tables.MADE and "bound" not in about:
        made = mixing_tables.make(table, quick)
        about |= {"features": made.Z.shape[1], "bound": mixing_chain.rounded(mixing_tables.bound(made))}
        results.write()


def _judge(results: Results, table: str, who: str) -> None:
    """Judge the agreement of the chains there are, unless these have been judged."""
    lines = [line for line in results.lines(table, who) if "failed" not in line]
    lines = [line for line in lines if results.trace(table, who, line["seed"]).exists()]
    judged = results.found["tables"][table].setdefault("agreement", {})
    chains = [[line["seed"], line["sweeps_seconds"]] for line in lines]
    if len(lines) < 2 or judged.get(who, {}).get("chains") == chains:
        return
    import mixing_agreement

    traces = [mixing_agreement.read(results.trace(table, who, line["seed"])) for line in lines]
    judged[who] = {"chains": chains, **mixing_agreement.judge(traces)}
    results.write()
    shown = ", ".join(f"{name} {r}" for name, r in judged[who]["rhat"].items())
    say(f"{table}, {who}: R-hat {shown}; agree after {judged[who]['agree_after_sweeps']} sweeps")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other", help="interpreter of an environment that has another commit")
    parser.add_argument("--tables", nargs="+", choices=mixing_tables.TABLES, default=mixing_tables.TABLES)
    parser.add_argument("--seeds", type=int, help=f"chains of each table and commit: {SEEDS}; quick: 3")
    parser.add_argument("--sweeps", type=int, help=f"of each chain, at least 12: {SWEEPS}; quick: 60")
    parser.add_argument("--quick", action="store_true", help="few rows, and numbers that say little")
    parser.add_argument("--jobs", type=int, default=1, help="chains that run at the same time")
    parser.add_argument("--again", action="store_true", help="run anew what has been run, of these tables")
    parser.add_argument("--anew", action="store_true", help="forget what is in the output")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.seeds = options.seeds or (3 if options.quick else SEEDS)
    options.sweeps = options.sweeps or (60 if options.quick else SWEEPS)
    if options.sweeps < 12:
        parser.error("chains of fewer than 12 sweeps cannot be judged")
    if options.output is None:
        options.output = RESULTS.with_name("mixing-quick.json") if options.quick else RESULTS
    return options


def here() -> str:
    """Return the folder from which this process has the package, for its own processes to have the same."""
    import glfm

    return str(Path(glfm.__file__).resolve().parents[1])


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.answer:
        mixing_chain.answer()
        return
    from machine import describe

    options.output = options.output.resolve()
    results = Results(options.output, options.quick, options.sweeps, options.anew)
    results.found["machine"] = describe()
    tables = mixing_tables.available(list(options.tables), say)
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    commits: dict[str, Commit] = {}
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            commits["this"] = Commit(sys.executable, {**plain, "PYTHONPATH": here()}, options.jobs, folder)
            if options.other is not None:
                commits["other"] = Commit(options.other, plain, options.jobs, folder)
            for who, commit in commits.items():
                described = commit.ask()
                if "error" in described:
                    raise SystemExit(f"{who}: {described['error']}")
                results.stamp(who, described)
            for table in tables:
                failures += measure(results, commits, table, options)
        except KeyboardInterrupt:
            raise SystemExit("Stopped; the same command goes on from here.") from None
        finally:
            for commit in commits.values():
                commit.close()
    if failures:
        raise SystemExit(f"{failures} chains failed; the same command tries them again.")


if __name__ == "__main__":
    main()
