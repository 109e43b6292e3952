"""A controller that knows one job, and what is to be said of it. Usage: tell_story.py STORY SOCKET

Each line of the story is "STATE STATE SENTENCE": what is answered when the job is asked for, and what when it is asked then why it waits. The next line begins with the next
question for the job; when the last one is over, its log ends, in which there is nothing.
"""
import http.server
import json
import socketserver
import sys
import threading

story = [line.split(" ", 2) for line in open(sys.argv[1]).read().splitlines()]
at = -1
over = threading.Event()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        global at
        if "/logs" in self.path:
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            over.wait()
            return
        if not self.path.endswith("/why"):
            at += 1
        if at == len(story):
            over.set()
        state, why_state, why = story[min(at, len(story) - 1)]
        answer = {"state": why_state, "why": why} if self.path.endswith("/why") else {"id": 7, "epoch": 1, "state": state}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "a client"

    def log_message(self, *_):
        pass


class Controller(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


Controller(sys.argv[2], Answer).serve_forever()
