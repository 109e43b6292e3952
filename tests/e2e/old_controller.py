"""A way to the controller that knows less of its API, as one of an earlier version does. Usage: old_controller.py CONTROLLER_SOCKET NEW_SOCKET PATH...

Requests for the paths are answered as by a controller that never heard of them; every other one is passed on. One request to a connection, until it is killed or nobody comes
for minutes.
"""
import json
import sys

from lose_answer import ask, requests


def refusal(path):
    body = json.dumps({"error": {"fact": f"there is nothing at '{path}'", "detail": "", "hint": "/v1/openapi.json lists what there is."}}).encode()
    return b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def main():
    controller, own = sys.argv[1:3]
    for client, request in requests(own):
        path = request.split(b" ")[1].decode()
        client.sendall(refusal(path) if path in sys.argv[3:] else ask(controller, request))


main()
