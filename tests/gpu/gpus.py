"""What the scripts here share: which GPUs there are, and how much of the first is used."""
import subprocess


def uuids():
    out = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
    return [bytes.fromhex(line.split("UUID: GPU-")[1].rstrip(")\n ").replace("-", "")) for line in out.splitlines() if "UUID: GPU-" in line]


def used_mib():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True).stdout
    return int(out.split()[0])
