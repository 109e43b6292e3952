"""Clusters on this machine for the live benchmarks: Sharewell's, and Slurm's where it is installed. Each lives in a folder of its own and is gone afterwards."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "release")
SHAREWELL = os.path.join(BUILD, "sharewell")
NODES, SLOTS = 4, 8


def build(*targets):
    subprocess.run(["cmake", "--build", BUILD, "--target", "sharewell", *targets, "--", "--quiet"], check=True, stdout=sys.stderr)


def until(what, seconds, holds):
    """Waits until it holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"bench: {what} takes more than {seconds} s")
        time.sleep(0.01)


def output(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


class Sharewell:
    """A controller, and agents with emulated GPUs."""

    def __init__(self, folder, agents=NODES):
        self.folder = folder
        self.state = os.path.join(folder, "controller")
        self.socket = os.path.join(self.state, "controller.sock")
        self.processes = []
        self.environment = {**os.environ, "SHAREWELL_CONTROLLER": "unix:" + self.socket}
        self.start_controller()
        gpus = os.path.join(folder, "gpus.yaml")
        with open(gpus, "w") as file:
            file.write(f"gpus:\n  - name: Emulated A100\n    count: {SLOTS}\n    memory: 80G\n")
        for i in range(agents):
            self.spawn("agent", "--controller", "unix:" + self.socket, "--state", os.path.join(folder, f"agent{i}"), "--node", f"n{i}", "--gpus", gpus)
        until("starting agents", 30, lambda: output(SHAREWELL, "nodes", "--noheader", env=self.environment).count("idle") == agents)

    def spawn(self, *arguments):
        log = open(os.path.join(self.folder, "log"), "a")
        self.processes.append(subprocess.Popen([SHAREWELL, *arguments], stdout=log, stderr=log))

    def start_controller(self):
        """Returns how long it took until it answered."""
        start = time.monotonic()
        self.spawn("controller", "--state", self.state, "--port", "none")
        until("starting the controller", 60, self.answers)
        return time.monotonic() - start

    def answers(self):
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(self.socket)
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                return client.recv(12).endswith(b"200")
            except OSError:
                return False

    def kill_controller(self):
        self.processes[0].send_signal(signal.SIGKILL)
        self.processes.pop(0).wait()

    def load(self, *arguments):
        return output(os.path.join(BUILD, "bench_load"), arguments[0], self.socket, *map(str, arguments[1:]))

    def is_idle(self):
        return output(SHAREWELL, "ps", "--noheader", env=self.environment) == ""

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()


SLURM_CONF = """ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/ctld
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
MaxJobCount=50000
MaxArraySize=20000
ReturnToService=2
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs={slots} RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class Slurm:
    """slurmctld and a slurmd for each node, with the settings of a small cluster: everything that is not said here is as Slurm has it."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(os.path.join(folder, "ctld"))
        os.chmod(folder, 0o755)
        key = os.path.join(folder, "key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(128))
        names = {"key-file": "key", "socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log", "seed-file": "munge.seed"}
        subprocess.run(["munged", "--force", *(f"--{name}={folder}/{file}" for name, file in names.items())], check=True)
        host, port = os.uname().nodename, 17400
        with open(os.path.join(folder, "slurm.conf"), "w") as file:
            file.write(SLURM_CONF.format(host=host, port=port, folder=folder, nodes=NODES, first=port + 1, last=port + NODES, slots=SLOTS))
        self.environment = {**os.environ, "SLURM_CONF": os.path.join(folder, "slurm.conf")}
        self.run("slurmctld")
        for i in range(NODES):
            self.run("slurmd", "-N", f"n{i + 1}")
        until("starting Slurm", 30, lambda: self.run("sinfo", "-h", "-t", "idle", "-o", "%D", check=False).strip() == str(NODES))

    @staticmethod
    def missing():
        """Why there is none, or None."""
        names = ["slurmctld", "slurmd", "munged", "sbatch", "srun", "squeue", "sinfo"]
        if any(shutil.which(name) is None for name in names):
            return "not installed: skipped"
        return None if os.geteuid() == 0 else "needs root: skipped"

    def run(self, *command, check=True):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=check, env=self.environment).stdout

    def version(self):
        return self.run("slurmctld", "-V").strip()

    def is_idle(self):
        return self.run("squeue", "-h", "-r", "-o", "%i") == ""

    def stop(self):
        self.run("scancel", "-u", "root", check=False)
        for name in [*(f"n{i + 1}" for i in range(NODES)), "ctld", "munged"]:
            try:
                with open(os.path.join(self.folder, name + ".pid")) as file:
                    pid = int(file.read())
                os.kill(pid, signal.SIGTERM)
                until("stopping Slurm", 30, lambda: not is_alive(pid))
            except (OSError, ValueError):
                pass


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
