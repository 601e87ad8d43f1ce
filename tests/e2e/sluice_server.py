# SPDX-License-Identifier: Apache-2.0
"""A sluice-serve process and a client for it, for the end-to-end tests. Standard library only."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

START_TIMEOUT_S = 60
REQUEST_TIMEOUT_S = 60
STOP_TIMEOUT_S = 90


def binary():
    return os.environ["SLUICE_SERVE"]


def run_to_end(*options, timeout=START_TIMEOUT_S):
    """Runs a server that is expected to end by itself. Returns the exit code, standard output and error."""
    ended = subprocess.run([binary(), *options], capture_output=True, text=True, timeout=timeout)
    return ended.returncode, ended.stdout, ended.stderr


class Server:
    """A server on a free port. `with Server(...) as server:` kills it at the end if it still runs."""

    def __init__(self, *options):
        self.process = subprocess.Popen([binary(), "--port", "0", *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.port = None
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._listening.wait(START_TIMEOUT_S)
        if self.port is None:
            self.process.kill()
            raise RuntimeError("the server does not listen: " + "".join(self.lines))

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(r"listening on http://127\.0\.0\.1:(\d+)", line)
            if found and self.port is None:
                self.port = int(found.group(1))
                self._listening.set()
        self._listening.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    def request(self, method, target, body=None):
        """Returns the status and the body as text. `body` is sent as it is, or as JSON when it is no string."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_TIMEOUT_S)
        try:
            data = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request(method, target, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def metrics(self):
        """{'name{label="value"}': number}"""
        status, text = self.request("GET", "/metrics")
        assert status == 200, text
        samples = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in samples}

    def metric(self, name, **labels):
        """The sum of the series of `name` with these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [value for series, value in self.metrics().items()
                 if series.split("{")[0] == name and all(label in series for label in wanted)]
        assert found, f"no metric {name} {labels}"
        return sum(found)

    def wait_for(self, is_reached, what, timeout=30):
        deadline = time.monotonic() + timeout
        while not is_reached():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout} s: {what}; state: {self.request('GET', '/debug/state')[1]}")
            time.sleep(0.01)

    def wait_until_idle(self):
        self.wait_for(lambda: self.metric("sluice_requests") == 0 and self.metric("sluice_transfers_in_flight") == 0,
                      "no request and no transfer")

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait_for_exit(self):
        return self.process.wait(STOP_TIMEOUT_S)


def completion_body(prompt, max_tokens, **fields):
    return {"model": "tiny", "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True,
            "return_token_ids": True, **fields}


class Stream:
    """An open streamed completion on a plain socket, so that the test can break it off."""

    def __init__(self, server, prompt, max_tokens, **fields):
        body = json.dumps(completion_body(prompt, max_tokens, stream=True, stream_options={"include_usage": True},
                                          **fields))
        self.socket = socket.create_connection(("127.0.0.1", server.port), REQUEST_TIMEOUT_S)
        self.socket.sendall((f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        self.response = http.client.HTTPResponse(self.socket, method="POST")

    def events(self):
        """The data of each event until [DONE], as it arrives."""
        self.response.begin()
        assert self.response.status == 200, self.response.read()
        for line in self.response:
            if line.startswith(b"data: "):
                data = line[len(b"data: "):].decode().strip()
                if data == "[DONE]":
                    return
                yield json.loads(data)
        raise AssertionError("the stream ended without [DONE]")

    def close(self):
        self.response.close()
        self.socket.close()

    def kill(self):
        """As when the client's process dies with unread data: the connection is reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.close()


class Receiver:
    """A streamed completion that a thread of its own receives."""

    def __init__(self, server, prompt, max_tokens, **fields):
        self._stream = Stream(server, prompt, max_tokens, **fields)
        self._events = []
        self._failure = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self):
        try:
            for event in self._stream.events():
                with self._changed:
                    self._events.append(event)
                    self._changed.notify_all()
        except Exception as failure:  # told to whoever waits
            self._failure = failure
        finally:
            self._stream.close()
        with self._changed:
            self._changed.notify_all()

    def tokens(self):
        return tokens_of(list(self._events))

    def finish_reason(self):
        """None before the end."""
        reasons = [choice["finish_reason"] for event in list(self._events) for choice in event["choices"]]
        return next((reason for reason in reasons if reason), None)

    def wait_for_tokens(self, num_tokens):
        with self._changed:
            assert self._changed.wait_for(lambda: self._failure or len(self.tokens()) >= num_tokens, REQUEST_TIMEOUT_S)
        assert self._failure is None, self._failure

    def wait_until_silent(self):
        """Returns the number of tokens once none has come for 0.1 s: what was sampled before is on its way."""
        num_tokens = -1
        while num_tokens != len(self.tokens()):
            num_tokens = len(self.tokens())
            time.sleep(0.1)
        return num_tokens

    def wait(self):
        """Until the stream has ended."""
        self._thread.join(REQUEST_TIMEOUT_S)
        assert not self._thread.is_alive(), "the stream did not end"
        assert self._failure is None, self._failure


def tokens_of(events):
    return [token for event in events for choice in event["choices"] for token in choice.get("token_ids", [])]
