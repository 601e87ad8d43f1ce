#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests of sluice-serve: real processes, real HTTP. Needs SLUICE_SERVE, the path of the binary."""

import json
import socket
import threading
import unittest

from sluice_server import Server, Stream, completion_body, run_to_end, tokens_of

SMALL = ("--num-gpu-blocks-override", "320", "--kv-offloading-size", "0.25")
NUM_USABLE_BLOCKS = 319


def letters(num_tokens, first="a"):
    """A prompt of the byte tokenizer: one token per letter."""
    return (first + "bcdefghijklmnopqrstuvwxyz" * (num_tokens // 25 + 1))[:num_tokens]


class KilledClient(unittest.TestCase):
    def assert_blocks_come_back(self, server, num_aborts_before):
        server.wait_for(lambda: server.metric("sluice_requests_total", reason="abort") == num_aborts_before + 1,
                        "the abort is counted")
        server.wait_until_idle()
        self.assertEqual(server.metric("sluice_blocks", state="held"), 0)
        self.assertEqual(server.metric("sluice_blocks", state="quarantined"), 0)
        self.assertEqual(server.metric("sluice_blocks"), NUM_USABLE_BLOCKS)
        self.assertEqual(server.metric("sluice_slots_pinned"), 0)
        self.assertEqual(server.request("GET", "/health")[0], 200)

    def test_blocks_come_back_after_a_kill_while_decoding(self):
        with Server(*SMALL, "--tiny-step-ms", "5") as server:
            stream = Stream(server, letters(500), 2000)
            next(stream.events())
            self.assertGreater(server.metric("sluice_blocks", state="held"), 30)
            stream.kill()
            self.assert_blocks_come_back(server, 0)

    # The load goes on to its physical end; only then are its blocks free.
    def test_blocks_come_back_after_a_kill_while_loading(self):
        with Server(*SMALL, "--host-copy-latency-ms", "400") as server:
            prompt = letters(500)
            status, text = server.request("POST", "/v1/completions", completion_body(prompt, 4))
            self.assertEqual(status, 200, text)
            server.wait_until_idle()
            status, text = server.request("POST", "/reset_prefix_cache")
            self.assertTrue(json.loads(text)["success"], text)
            stream = Stream(server, prompt, 50)
            server.wait_for(lambda: server.metric("sluice_transfers_in_flight", direction="load") > 0, "a load")
            stream.kill()
            self.assert_blocks_come_back(server, 0)

    def test_blocks_come_back_after_a_kill_before_the_first_token(self):
        with Server(*SMALL, "--tiny-step-ms", "200") as server:
            stream = Stream(server, letters(500), 2000)
            server.wait_for(lambda: server.metric("sluice_requests") > 0, "the request is there")
            stream.kill()
            self.assert_blocks_come_back(server, 0)


class Termination(unittest.TestCase):
    def test_open_streams_finish_after_sigterm(self):
        num_streams, num_tokens = 4, 120
        with Server(*SMALL, "--tiny-step-ms", "10") as server:
            prompts = [letters(40, first) for first in "wxyz"]
            references = [json.loads(server.request("POST", "/v1/completions", completion_body(prompt, num_tokens))[1])
                          for prompt in prompts]
            all_started = threading.Barrier(num_streams + 1, timeout=60)
            results = [None] * num_streams

            def receive(position):
                events = Stream(server, prompts[position], num_tokens).events()
                received = [next(events)]
                all_started.wait()
                results[position] = received + list(events)

            threads = [threading.Thread(target=receive, args=(position,)) for position in range(num_streams)]
            for thread in threads:
                thread.start()
            all_started.wait()
            server.terminate()
            for thread in threads:
                thread.join()
            self.assertEqual(server.wait_for_exit(), 0, "".join(server.lines))
        for events, reference in zip(results, references):
            self.assertIsNotNone(events)
            self.assertEqual(tokens_of(events), reference["choices"][0]["token_ids"])
            self.assertEqual(events[-1]["usage"]["completion_tokens"], num_tokens)

    def test_an_idle_server_ends_at_once(self):
        with Server(*SMALL) as server:
            server.terminate()
            self.assertEqual(server.wait_for_exit(), 0, "".join(server.lines))


class Refusal(unittest.TestCase):
    def assert_ends_with_one_line(self, expected_code, expected_words, *options):
        code, _, errors = run_to_end(*options)
        self.assertEqual(code, expected_code, errors)
        self.assertEqual(errors.count("\n"), 1, errors)
        for word in expected_words:
            self.assertIn(word, errors)

    def test_a_port_in_use_is_one_line_and_code_1(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = str(other.getsockname()[1])
            self.assert_ends_with_one_line(1, [port, "in use"], "--port", port, *SMALL)

    def test_too_little_memory_is_one_line_and_code_1(self):
        self.assert_ends_with_one_line(1, ["memory"], "--port", "0", "--kv-offloading-size", "900000")

    def test_bad_options_are_one_line_and_code_2(self):
        for words in (["--port", "70000"], ["--block-size", "0"], ["--kv-offloading-size", "-1"], ["--model", "huge"],
                      ["--num-gpu-blocks-override", "many"], ["--unheard-of"], ["--device", "cuda"]):
            with self.subTest(options=words):
                self.assert_ends_with_one_line(2, words[:1], *words)
        with self.subTest("longer than the pool holds"):
            self.assert_ends_with_one_line(2, ["--max-model-len is 100000, allowed is 1 to 5104"],
                                           "--port", "0", *SMALL, "--max-model-len", "100000")

    def test_bad_bodies_get_400_and_the_server_goes_on(self):
        with Server(*SMALL) as server:
            bodies = ["{", "[]", '"text"', b"\xff", '{"prompt": "\xff"}'.encode("latin-1"),
                      {"prompt": ""}, {"prompt": []}, {"prompt": 7}, {"prompt": [-1]}, {"prompt": [99999999]},
                      {"prompt": "a", "max_tokens": -1}, {"prompt": "a", "max_tokens": 10**30},
                      {"prompt": "a", "max_tokens": "many"}, {"prompt": "a", "temperature": -0.5},
                      {"prompt": "a", "unheard_of": 1}, {"prompt": letters(20000)}]
            for body in bodies:
                with self.subTest(body=str(body)[:60]):
                    status, text = server.request("POST", "/v1/completions", body)
                    self.assertEqual(status, 400, text)
                    self.assertTrue(json.loads(text)["error"]["message"])
            status, text = server.request("POST", "/v1/completions", completion_body("a", 3))
            self.assertEqual(status, 200, text)
            self.assertEqual(len(json.loads(text)["choices"][0]["token_ids"]), 3)
            self.assertEqual(server.request("POST", "/v1/completions", {"model": "other", "prompt": "a"})[0], 404)


if __name__ == "__main__":
    unittest.main(verbosity=2)
