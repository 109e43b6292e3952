"""HTTP by hand: what a well-behaved library would refuse to send. Every wait has an end."""
import json
import os
import select
import socket
import time
import weakref

PATIENCE_S = 60  # for an answer; a busy machine may need it, an idle one never does


def dial_tcp(port):
    connection = socket.socket()
    connection.settimeout(PATIENCE_S)
    connection.connect(("127.0.0.1", port))
    return connection


def dial_unix(path, uid):
    """The kernel tells the other side the user at the moment of connecting."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE_S)
    os.setegid(uid)
    os.seteuid(uid)
    try:
        connection.connect(path)
    finally:
        os.seteuid(0)
        os.setegid(0)
    return connection


def head(method, target, fields=(), host="localhost"):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"] + [f"{name}: {value}" for name, value in fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def request(method, target, body=None, fields=()):
    """One whole request; the body is bytes, or becomes JSON."""
    if body is None:
        return head(method, target, list(fields) + ([("Content-Length", "0")] if method == "POST" else []))
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return head(method, target, list(fields) + [("Content-Type", "application/json"), ("Content-Length", str(len(data)))]) + data


def send(connection, data):
    """Whether all of it went out; the other side may close in the middle."""
    try:
        connection.sendall(data)
        return True
    except OSError:
        return False


def pour(connection, data, seconds=5):
    """Sends as much as the other side takes, without reading; how many bytes that was. Ends when nothing has moved for that long."""
    connection.setblocking(False)
    sent = 0
    while sent < len(data):
        if not select.select([], [connection], [], seconds)[1]:
            break
        try:
            sent += connection.send(data[sent : sent + 65536])
        except OSError:
            break
    connection.settimeout(PATIENCE_S)
    return sent


def read_all(connection, seconds=PATIENCE_S, most=64 << 20):
    """What comes until the end, or until nothing has come for that long."""
    connection.settimeout(seconds)
    data = bytearray()
    while len(data) < most:
        try:
            piece = connection.recv(1 << 16)
        except OSError:
            break
        if not piece:
            break
        data += piece
    return bytes(data)


REST = weakref.WeakKeyDictionary()  # what was read of the next answer already, by connection


def read_answer(connection):
    """The status and the body of one answer; status 0: the other side closed, or said nothing in time."""
    data = REST.pop(connection, b"")
    while True:
        while b"\r\n\r\n" not in data:
            try:
                piece = connection.recv(1 << 16)
            except OSError:
                piece = b""
            if not piece:
                return 0, b""
            data += piece
        top, data = data.split(b"\r\n\r\n", 1)
        status = int(top.split(b" ", 2)[1])
        if status != 100:
            break
    length = 0
    for line in top.split(b"\r\n")[1:]:
        name, value = line.split(b":", 1)
        if name.lower() == b"content-length":
            length = int(value)
    while len(data) < length:
        try:
            piece = connection.recv(1 << 20)
        except OSError:
            piece = b""
        if not piece:
            return 0, b""
        data += piece
    if len(data) > length:
        REST[connection] = data[length:]
    return status, data[:length]


def statuses(data):
    """The status of each answer in it, in order."""
    found, at = [], data.find(b"HTTP/1.1 ")
    while at >= 0:
        found.append(int(data[at + 9 : at + 12]))
        at = data.find(b"HTTP/1.1 ", at + 12)
    return found


def tally(values):
    """'401 x 20, 0 x 3': for the table."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return ", ".join(f"{value} x {count}" for value, count in sorted(counts.items(), key=lambda item: str(item[0])))


def wait_until(holds, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
