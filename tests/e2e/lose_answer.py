"""A way to the controller that loses one answer. Usage: lose_answer.py CONTROLLER_SOCKET NEW_SOCKET [request]

Every request is passed on, and every answer but one: of the first POST the client hears nothing, though the controller has answered. With `request`, the controller does not
hear of it either. One request to a connection, until it is killed or no request comes for minutes.
"""
import os
import socket
import sys


def whole(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    head, body = data.split(b"\r\n\r\n", 1)
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = int(lengths[0].split(b":")[1]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def ask(path, request):
    controller = socket.socket(socket.AF_UNIX)
    controller.connect(path)
    controller.sendall(request)
    return whole(controller)


def requests(own):
    """Each, with the client that waits for the answer. The socket is there when it can be used."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(own + ".new")
    listener.listen(8)
    listener.settimeout(300)  # no request comes any more
    os.rename(own + ".new", own)
    while True:
        client, _ = listener.accept()
        request = whole(client)
        if request is not None:
            yield client, request
        client.close()


def main():
    controller, own = sys.argv[1:3]
    lost = False
    for client, request in requests(own):
        loses = not lost and request.startswith(b"POST ")
        answer = ask(controller, request) if not loses or "request" not in sys.argv else None
        if not loses:
            client.sendall(answer)
        lost = lost or loses


if __name__ == "__main__":
    main()
