"""A way to the controller that loses the first answer. Usage: lose_answer.py CONTROLLER_SOCKET NEW_SOCKET

Every request is passed on; of the first connection the client hears nothing, though the controller has answered.
"""
import os
import socket
import sys


def whole_answer(connection):
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, body = data.split(b"\r\n\r\n", 1)
    length = int([line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")][0].split(b":")[1])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def whole_request(connection):
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


def main():
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[2] + ".new")
    listener.listen(8)
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    for number in range(2):
        client, _ = listener.accept()
        request = whole_request(client)
        if request is not None:
            controller = socket.socket(socket.AF_UNIX)
            controller.connect(sys.argv[1])
            controller.sendall(request)
            answer = whole_answer(controller)
            if number > 0:
                client.sendall(answer)
        client.close()


main()
