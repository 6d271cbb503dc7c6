"""Keratin beside other systems, on the models of the zoo or on your own.

    peers.py BUILD [--model-dir DIR] [--models NAME…] [--systems NAME…] [--threads N]

DIR has a folder for each model, NAME/model.keras. What else is needed is made
in that folder: input.npz, unless it is there, reference.npz and the exports.

Builds what is missing first: a virtual environment for each system (network),
the models and their exports (gigabytes). Then, for each model, all systems are
started, and measured in turn, round after round, one process running at a
time, so that load from outside hits them alike. With one thread the number
compared is CPU time, which such load does not lengthen; with more it is the
time that passes. A ratio is the median of those of the rounds. With one thread
there is a second one beside it, of the runs that no other program on the same
core disturbed.

Writes BUILD/peers/results.json, prints a table, and with --plot draws
models.svg and kernels.svg beside it.
"""

import argparse
import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import report
from core import Core, medians
from systems import SYSTEMS

HERE = os.path.dirname(os.path.abspath(__file__))
ZOO = os.path.join(HERE, "..", "zoo")


class Failure(Exception):
    """Of one system with one model: reported, the others go on."""


def environment(build, name):
    """The Python of a virtual environment, made if it is missing."""
    # What makes and exports the models is the environment of `make zoo`.
    directory = os.path.join(build, "zoo", "venv") if name == "export" else \
        os.path.join(build, "peers", "venv", name)
    python = os.path.join(directory, "bin", "python")
    done = os.path.join(directory, f"{name}.done")
    if os.path.exists(done):
        return python
    print(f"installing {name}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)

    def install(requirements, *flags):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *flags,
                        "--requirement", requirements], check=True)

    if name == "export":
        install(os.path.join(ZOO, "requirements.txt"))
    install(os.path.join(HERE, "requirements", f"{name}.txt"), "--no-deps")
    open(done, "w").close()
    return python


def make_model(arguments, name):
    """The directory of a model with its reference and exports."""
    build, own = arguments.build, arguments.model_dir
    directory = os.path.join(own or os.path.join(build, "zoo"), name)

    def make(script, arguments, product):
        if not os.path.exists(os.path.join(directory, product)):
            print(f"making {name}/{product}", file=sys.stderr, flush=True)
            python = environment(build, "export")
            try:
                subprocess.run([python, script, *arguments], check=True,
                               stdout=subprocess.DEVNULL)
            except subprocess.CalledProcessError:
                raise Failure(f"{os.path.basename(script)} makes no "
                              f"{product} of it, see above") from None

    if own:
        make(os.path.join(HERE, "reference.py"), [directory], "reference.npz")
    else:
        make(os.path.join(ZOO, "make.py"), [name, directory], "reference.npz")
    make(os.path.join(HERE, "export.py"), [directory], "exported")
    return directory


def child_environment(threads):
    number = str(threads)
    return dict(os.environ, OMP_NUM_THREADS=number, MKL_NUM_THREADS=number,
                OPENBLAS_NUM_THREADS=number, KTN_NUM_THREADS=number,
                NPROC=number, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="",
                JAX_PLATFORMS="cpu")


class Peer:
    """A worker, stopped except while it starts or is measured."""

    def __init__(self, name, python, directory, threads, log,
                 worker="worker.py", variables={}, core=None):
        self.name, self.core = name, core
        self.process = subprocess.Popen(
            [python, os.path.join(HERE, worker), name, directory,
             str(threads), *([core.library] if core else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env={**child_environment(threads), **variables},
            start_new_session=True)
        self.text = b""
        try:
            self.facts = self.answer(timeout=900)
        except Failure:
            self.close()
            raise
        self.signal(signal.SIGSTOP)

    def answer(self, timeout):
        end = time.monotonic() + timeout
        output = self.process.stdout.fileno()
        while b"\n" not in self.text:
            left = end - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
                raise Failure(f"no answer after {timeout} s")
            part = os.read(output, 1 << 20)
            if not part:
                raise Failure(f"died, status {self.process.wait()}")
            self.text += part
        line, self.text = self.text.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def measure(self, seconds):
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.write(f"{seconds}\n".encode())
            self.process.stdin.flush()
            times = self.answer(timeout=60 + 20 * seconds)
        except BrokenPipeError:
            raise Failure("died") from None
        self.signal(signal.SIGSTOP)
        return self.core.round(times) if self.core else medians(times)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def close(self):
        self.signal(signal.SIGKILL)
        self.process.wait()


class Keratin:
    """keratin-run on a library made by keratinc: a process each round."""

    def __init__(self, name, options, programs, directory, threads, scratch,
                 core):
        self.name, self.threads, self.core = name, threads, core
        self.run = os.path.join(programs, "keratin-run")
        self.directory = directory
        os.makedirs(os.path.join(scratch, name))
        self.library = os.path.join(scratch, name, "model.so")
        compile_ = [os.path.join(programs, "keratinc"),
                    os.path.join(directory, "model.keras"),
                    "-o", self.library[:-len(".so")], *options,
                    f"--threads={threads}"]
        # Its time counts: no kernel is to be found.
        process = subprocess.Popen([*compile_, "--emit=so"],
                                   stderr=subprocess.PIPE,
                                   env={**os.environ, "KERATIN_CACHE_DIR": ""})
        message = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise Failure(message.strip() or f"status {process.returncode}")
        first = self.json(repeat=3)
        self.median = first["latency_ms"]["median"]
        self.facts = {
            "compile_cpu_s": usage.ru_utime + usage.ru_stime,
            "compile_peak_rss_mb": usage.ru_maxrss / 1024,
            "library_bytes": os.path.getsize(self.library),
            "arena_bytes": first["arena_bytes"],
            "weights_bytes": first["weights_bytes"],
            "max_rel_error": first["max_rel_error"],
            **self.from_cold([*compile_, "--emit=exe"]),
        }
        # The kernels of a profiled library, which is not the one measured.
        subprocess.run([*compile_, "--emit=so", "--profile"], check=True)
        profile = self.json("--profile", repeat=self.repeat(1))
        self.facts["profile"] = {
            key: profile[key] for key in ("machine", "kernels")}
        subprocess.run([*compile_, "--emit=so"], check=True)

    def from_cold(self, compile_):
        """A program of its own: from its start to its end after one run."""
        subprocess.run(compile_, check=True)
        program = self.library[:-len(".so")]
        seconds = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([program, "--repeat=1"], check=True,
                           stdout=subprocess.DEVNULL)
            seconds.append(time.perf_counter() - start)
        cold = statistics.median(seconds)
        # What wait4 tells of a child includes this process before its exec.
        process = subprocess.Popen([program, "--repeat=1000000000"],
                                   stdout=subprocess.DEVNULL)
        time.sleep(0.3 + 3 * cold)
        with open(f"/proc/{process.pid}/status") as status:
            rss = next(int(line.split()[1]) for line in status
                       if line.startswith("VmHWM"))
        process.kill()
        process.wait()
        os.remove(program)
        return {"cold_start_ms": cold * 1e3, "peak_rss_mb": rss / 1024}

    def repeat(self, seconds):
        return max(3, min(100000, int(seconds * 1e3 / self.median)))

    def json(self, *options, repeat):
        process = subprocess.run(
            [self.run, self.library, "--inputs", f"{self.directory}/input.npz",
             "--expect", f"{self.directory}/reference.npz", "--max-rel-error",
             "1", "--threads", str(self.threads), "--repeat", str(repeat),
             "--json", *options], capture_output=True, text=True)
        if process.returncode:
            raise Failure(process.stderr.strip())
        return json.loads(process.stdout)

    def measure(self, seconds):
        if self.core:
            result = self.json("--runs", repeat=self.repeat(seconds))
            return self.core.round(result["runs"])
        result = self.json(repeat=self.repeat(seconds))
        return {"ms": result["latency_ms"]["median"],
                "cpu_ms": result["cpu_ms"]["median"]}

    def close(self):
        pass


def measure_model(arguments, name, scratch, core):
    """What each system gave: its facts, and `rounds`, or an `error`."""
    directory = make_model(arguments, name)
    results, ready = {}, []

    def start(system, make):
        try:
            ready.append(make())
            results[system] = dict(ready[-1].facts, rounds=[])
        except Failure as failure:
            results[system] = {"error": str(failure)}

    programs = os.path.join(arguments.build, "bin")
    for variant in arguments.keratin:
        label, _, options = variant.partition("=")
        start(label, lambda: Keratin(label, options.split(), programs,
                                     directory, arguments.threads, scratch,
                                     core))
    with open(os.path.join(arguments.out, "log"), "ab") as log:
        for system in arguments.systems:
            python = environment(arguments.build, SYSTEMS[system].environment)
            start(system, lambda: Peer(system, python, directory,
                                       arguments.threads, log, core=core))
    measure_rounds(arguments, ready, results)
    return results


def measure_rounds(arguments, ready, results):
    """Measures all of `ready` in turn, round after round, and closes them."""
    for _ in range(arguments.rounds):
        for measured in list(ready):
            try:
                times = measured.measure(arguments.seconds)
                results[measured.name]["rounds"].append(times)
            except Failure as failure:
                results[measured.name] = {"error": str(failure)}
                ready.remove(measured)
                measured.close()
    for measured in ready:
        measured.close()


def zoo_names():
    python = os.path.join(ZOO, "make.py")
    names = {}
    # Only the list: the file itself needs Keras.
    with open(python) as source:
        for line in source.read().split("ZOO = {")[1].split("}")[0].split("\n"):
            if ":" in line:
                names[line.split('"')[1]] = None
    return list(names)


def names_in(directory):
    """The folders that have a model, of a folder or of the zoo."""
    if not directory:
        return zoo_names()
    try:
        return [name for name in sorted(os.listdir(directory)) if
                os.path.exists(os.path.join(directory, name, "model.keras"))]
    except OSError as error:
        raise SystemExit(f"peers.py: {error}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("build", help="build tree with bin/keratinc")
    parser.add_argument("--model-dir", metavar="DIR",
                        help="your models, DIR/NAME/model.keras; else the zoo")
    parser.add_argument("--models", nargs="+", metavar="NAME",
                        help="some of them; else all")
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS,
                        default=["onnxruntime", "openvino", "litert"],
                        help=f"of {', '.join(SYSTEMS)}", metavar="NAME")
    parser.add_argument("--keratin", nargs="+", default=["keratin"],
                        metavar="NAME=OPTIONS",
                        help="variants with options of keratinc")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5,
                        help="of each system in each round")
    parser.add_argument("--out", help="directory of results; else BUILD/peers")
    parser.add_argument("--plot", action="store_true")
    arguments = parser.parse_args()
    arguments.build = os.path.abspath(arguments.build)
    names = names_in(arguments.model_dir)
    for name in arguments.models or []:
        if name not in names:
            parser.error(f"argument --models: invalid choice: '{name}' "
                         f"(choose from {', '.join(names)})")
    arguments.out = arguments.out or os.path.join(arguments.build, "peers")
    os.makedirs(arguments.out, exist_ok=True)

    results = {"threads": arguments.threads, "date": time.strftime("%F %R"),
               "cpu": report.cpu_name(), "models": {}}
    path = os.path.join(arguments.out, "results.json")
    # Of several cores one could be disturbed and another not.
    core = None if arguments.threads > 1 else Core(os.path.join(
        arguments.build, "tests", "bench", "additions.so"))
    failed = False
    for name in arguments.models or names:
        scratch = tempfile.mkdtemp(prefix="keratin-peers-")
        try:
            results["models"][name] = measure_model(
                arguments, name, scratch, core)
        except Failure as failure:
            failed = True
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
            continue
        finally:
            shutil.rmtree(scratch)
        with open(path, "w") as file:
            json.dump(results, file, indent=1)
        print(report.model_line(results, name), file=sys.stderr, flush=True)
    report.print_tables(results)
    if arguments.plot:
        subprocess.run([environment(arguments.build, "plot"),
                        os.path.join(HERE, "plot.py"), path], check=True)
    if failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
