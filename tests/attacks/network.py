"""A network client without a token."""
import os
import random
import socket
import struct
import time

import wire
from arena import attack, check

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def shapes(arena, pieces, allowed, most=1):
    """Sends each piece on a connection of its own and reads to the end: each gets at most so many answers, with a status that is allowed."""
    found = []
    for piece in pieces:
        with arena.tcp() as connection:
            wire.send(connection, piece)
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = wire.statuses(wire.read_all(connection))
        check(len(got) <= most, f"{piece[:100]!r} has {len(got)} answers: {got}")
        check(all(status in allowed for status in got), f"{piece[:100]!r} is answered with {got}")
        found += got or [0]
    return wire.tally(found)


@attack("heads that come a byte at a time")
def slow_heads(arena):
    connections = [arena.keep(arena.tcp()) for _ in range(arena.size(400, 60))]
    for byte in b"GET /healthz HT":
        alive = [wire.send(connection, bytes([byte])) for connection in connections]
    return f"{sum(alive)} of {len(alive)} still heard"


@attack("connections that close their half at once, and wait")
def half_closed(arena):
    for i in range(arena.size(1500, 100)):
        connection = arena.keep(arena.tcp())
        wire.send(connection, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n" if i % 2 else b"")
        try:
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    return f"{len(arena.kept)} opened"


@attack("headers of a megabyte that never end their line")
def huge_header(arena):
    found = []
    for name in (b"Cookie: ", b"Authorization: Bearer ", b"X" * 100_000):
        connection = arena.keep(arena.tcp())
        wire.pour(connection, b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n" + name + b"a" * (1 << 20), 2)
        found += wire.statuses(wire.read_all(connection, 15)) or [0]
    check(set(found) <= {0, 400, 401, 431}, f"answered with {found}")
    return wire.tally(found)


@attack("ten thousand headers")
def many_headers(arena):
    lines = b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(10_000))
    return shapes(arena, [b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n"], {400, 431})


@attack("targets of a megabyte, of nothing, of another host, with bytes that are none")
def odd_targets(arena):
    targets = [b"/" + b"a" * (1 << 20), b"*", b"http://elsewhere/v1/jobs", b"//v1//jobs", b"/v1/jobs?" + b"&" * 3000, b"/%", b"/%zz", b"/\xff\xfe", b"/v1/jobs#x", b"?", b"\\v1\\jobs"]
    return shapes(arena, [b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % target for target in targets], {400, 401, 404, 414, 431})


@attack("NUL and other control characters in target, header, method")
def control_characters(arena):
    pieces = []
    for byte in (b"\x00", b"\x01", b"\x0b", b"\x7f", b"\r", b"\n", b"\x1b[2J"):
        pieces += [b"GET /v1/jobs/1%s HTTP/1.1\r\nHost: x\r\n\r\n" % byte, b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX: a%sb\r\n\r\n" % byte, b"G%sT / HTTP/1.1\r\nHost: x\r\n\r\n" % byte]
    return shapes(arena, pieces, {400, 401, 404, 405, 501, 505})


@attack("paths that climb out of their place")
def climbing(arena):
    targets = ["/v1/jobs/../../../etc/passwd", "/v1/jobs/..%2f..%2ftokens.own", "/v1/jobs/%2e%2e/%2e%2e/state/tokens", "/../../../../etc/shadow", "/v1/jobs/1/logs/../../../tokens",
               "/v1/%00/../tokens", "/healthz/../v1/jobs", "/healthz%2f..%2fv1%2fjobs", "/HEALTHZ/../metrics", "/./metrics", "//metrics", "/metrics/", "/metrics;/healthz", "/metrics%20"]
    return shapes(arena, [wire.head("GET", target, [("Connection", "close")]) for target in targets], {400, 401, 404})


@attack("megabytes of random bytes")
def garbage(arena):
    rng = random.Random(16)
    answers = []
    for _ in range(arena.size(60, 10)):
        with arena.tcp() as connection:
            wire.pour(connection, rng.randbytes(arena.size(1 << 20, 1 << 16)), 2)
            answers += wire.statuses(wire.read_all(connection, 15)) or [0]
    check(set(answers) <= {0, 400, 401, 405, 414, 431, 501, 505}, f"answered with {set(answers)}")
    return wire.tally(answers)


@attack("thousands of requests in one go, whose answers are not read")
def unread_pipelines(arena):
    data = wire.request("GET", "/v1/jobs") * 5000
    sent = [wire.pour(arena.keep(arena.tcp()), data, 0.5) for _ in range(arena.size(100, 10))]
    return f"{sum(sent)} bytes taken"


@attack("thousands of good requests in one go, read: each has its answer or the connection ends")
def read_pipelines(arena):
    count = arena.size(20_000, 2000)
    connection = arena.keep(arena.tcp())
    got, sent = [], 0
    for _ in range(count // 100):
        if not wire.send(connection, HEALTH * 100):
            break
        sent += 100
        for _ in range(100):
            got.append(wire.read_answer(connection)[0])
    check(set(got) <= {0, 200, 429, 503}, f"answered with {set(got)}")
    return wire.tally(got)


@attack("bodies in pieces that never end, of a byte each")
def endless_pieces(arena):
    connections = []
    for target in ("/v1/jobs", "/v1/agents/sync", "/healthz") * arena.size(20, 4):
        connection = arena.keep(arena.tcp())
        wire.send(connection, wire.head("POST", target, [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")]))
        connections.append(connection)
    for _ in range(arena.size(200, 20)):
        alive = [wire.send(connection, b"1\r\n[\r\n") for connection in connections]
    return f"{sum(alive)} of {len(alive)} still taken"


@attack("pieces whose length is absurd")
def absurd_pieces(arena):
    pieces = []
    for size in (b"ffffffffffffffff", b"7fffffffffffffff", b"-1", b"+1", b"0x10", b"1e9", b"", b" ", b"g", b"1" * 5000, b"1;" + b"x" * 20_000):
        pieces.append(wire.head("POST", "/v1/jobs", [("Transfer-Encoding", "chunked")]) + size + b"\r\n{}\r\n0\r\n\r\n")
    return shapes(arena, pieces, {400, 401, 411, 413, 431, 501})


@attack("requests that two readers would cut in two places")
def smuggling(arena):
    inner = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    length = b"Content-Length: %d\r\n" % len(inner)
    heads = [length + b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\n" + length, b"Content-Length: 0\r\n" + length, length + b"Content-Length: 0\r\n",
             b"Content-Length: 0, %d\r\n" % len(inner), b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding: identity, chunked\r\n", b"Transfer-Encoding : chunked\r\n",
             b" Transfer-Encoding: chunked\r\n", b"X: a\r\n Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b"Content-Length: 0\n\n"]
    # The first request may be refused, and the rest of the bytes is its body or nothing: no answer of /healthz may come.
    answers = []
    for head in heads:
        with arena.tcp() as connection:
            wire.send(connection, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n0\r\n\r\n" + inner)
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = wire.statuses(wire.read_all(connection))
        check(200 not in got, f"{head!r}: a request within a request is answered")
        answers += got or [0]
    return wire.tally(answers)


@attack("lengths that are none: negative, too large, two, of other bases")
def absurd_lengths(arena):
    values = [b"-1", b"18446744073709551616", b"9223372036854775807", b"99999999999999999999999999", b"0x10", b"1e3", b"", b"1 1", b"+5", b"5;", b"\xd9\xa3", b"5\x00"]
    pieces = [b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %s\r\n\r\n" % value for value in values]
    pieces += [b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"]
    return shapes(arena, pieces, {400, 401, 408, 413, 431})


@attack("Expect: 100-continue before anything was proved")
def expecting(arena):
    answers = []
    for expect in ("100-continue", "100-Continue", "200-ok", "100-continue, x"):
        for _ in range(arena.size(50, 5)):
            connection = arena.keep(arena.tcp())
            wire.send(connection, wire.head("POST", "/v1/jobs", [("Expect", expect), ("Content-Length", "16000000")]))
            connection.settimeout(20)
            data = connection.recv(65536) if connection else b""
            check(b" 100 " not in data.split(b"\r\n")[0], "a stranger is told to go on with 16 MB")
            answers += wire.statuses(data) or [0]
    return wire.tally(answers)


@attack("other protocols: HTTP/2, TLS, SSH, SMB, WebSocket")
def other_protocols(arena):
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2
    pieces = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" * 1000, hello, b"SSH-2.0-OpenSSH_9.0\r\n", b"\x00\x00\x00\x85\xffSMB" + bytes(200),
              wire.head("GET", "/v1/events", [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", "x")]),
              wire.head("GET", "/v1/events", [("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"), ("Connection", "Upgrade, HTTP2-Settings")])]
    return shapes(arena, pieces, {400, 401, 404, 405, 426, 501, 505})


@attack("methods and versions that are none")
def odd_methods(arena):
    methods = [b"CONNECT", b"TRACE", b"OPTIONS", b"PROPFIND", b"get", b"X" * 10_000, b"", b"POST POST"]
    pieces = [b"%s /v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % method for method in methods]
    pieces += [b"GET /v1/jobs%s\r\nHost: x\r\n\r\n" % version for version in (b"", b" HTTP/0.9", b" HTTP/9.9", b" HTTP/1.1x", b" HTTP/1.10000", b" http/1.1", b"  HTTP/1.1")]
    return shapes(arena, pieces, {400, 401, 404, 405, 414, 431, 501, 505})


@attack("tokens by guess: none is right, and the guesses do not wait for each other")
def guessing(arena):
    answers = []
    connection = arena.tcp()
    for i in range(arena.size(5000, 300)):
        if not wire.send(connection, wire.request("GET", "/v1/jobs", None, [("Authorization", "Bearer " + os.urandom(32).hex())])):
            connection.close()
            connection = arena.tcp()
            continue
        status, _ = wire.read_answer(connection)
        if status == 0:
            connection.close()
            connection = arena.tcp()
        answers.append(status)
    connection.close()
    check(set(answers) <= {0, 401, 429}, f"answered with {set(answers)}")
    return wire.tally(answers)


@attack("Authorization that is long, doubled, empty, of another kind")
def odd_tokens(arena):
    good_form = "a" * 64
    values = [[("Authorization", "Bearer " + "a" * 15_000)], [("Authorization", "Bearer ")], [("Authorization", "Basic cm9vdDpyb290")], [("Authorization", "Bearer " + good_form)] * 2,
              [("Authorization", f"Bearer {good_form} {good_form}")], [("Authorization", "Bearer\t" + good_form)], [("authorization", "bearer " + "\u0661" * 60)], [("Authorization", "")],
              [("Cookie", "token=" + good_form)], [("X-Forwarded-For", "127.0.0.1"), ("X-Remote-User", "root")]]
    return shapes(arena, [wire.head("GET", "/v1/jobs", fields + [("Connection", "close")]) for fields in values], {400, 401, 431})


@attack("connections that are reset in the middle of everything")
def resets(arena):
    for i in range(arena.size(3000, 200)):
        connection = arena.tcp()
        wire.send(connection, [b"", b"G", HEALTH, HEALTH * 50, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"][i % 5])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return "none is missed"


@attack("pages of other sites: foreign Host and Origin")
def foreign_sites(arena):
    fields = [[("Origin", "http://evil.example")], [("Origin", "null")], [("Referer", "http://evil.example/"), ("Sec-Fetch-Site", "cross-site")]]
    pieces = [wire.head(method, "/v1/jobs", each + [("Connection", "close"), ("Content-Length", "0")], host) for each in fields for host in ("evil.example", "localhost:1", "[::1]", "")
              for method in ("GET", "POST")]
    return shapes(arena, pieces, {400, 401, 403})


@attack("a window of one byte: answers that are read as slowly as TCP allows")
def small_windows(arena):
    for _ in range(arena.size(200, 20)):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        connection.settimeout(wire.PATIENCE_S)
        connection.connect(("127.0.0.1", arena.port))
        arena.keep(connection)
        wire.pour(connection, HEALTH * 500, 0.05)
    time.sleep(0.2)
    return f"{len(arena.kept)} readers"
