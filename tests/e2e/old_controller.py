"""A way to the controller that knows less of its API, as one of an earlier version does. Usage: old_controller.py CONTROLLER_SOCKET NEW_SOCKET PATH[?PARAMETER]...

Requests for the paths are answered as by a controller that never heard of them, or of that parameter of one; every other one is passed on. One request to a connection, until it
is killed or no request comes for minutes.
"""
import json
import sys

from lose_answer import ask, requests


def refusal(status, fact, hint):
    body = json.dumps({"error": {"fact": fact, "detail": "", "hint": hint}}).encode()
    return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def refuses(target, unknown):
    """What is said instead of an answer; None: the request is passed on."""
    path, _, query = target.partition("?")
    if path in unknown:
        return refusal(b"404 Not Found", f"there is nothing at '{path}'", "/v1/openapi.json lists what there is.")
    for parameter in (item.partition("=")[0] for item in query.split("&")):
        if f"{path}?{parameter}" in unknown:
            return refusal(b"400 Bad Request", f"there is no parameter '{parameter}' here", "")
    return None


def main():
    controller, own = sys.argv[1:3]
    for client, request in requests(own):
        refused = refuses(request.split(b" ")[1].decode(), sys.argv[3:])
        client.sendall(refused if refused is not None else ask(controller, request))


main()
