#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""End-to-end tests of pausing, sleeping, waiting resets and what a request says about caches and order: real
processes, real HTTP. Needs SLUICE_SERVE, the path of the binary."""

import json
import time
import unittest

from sluice_server import Receiver, Server, completion_body

OPTIONS = ("--num-gpu-blocks-override", "320", "--kv-offloading-size", "0.25", "--tiny-step-ms", "4")


def letters(num_tokens):
    """A prompt of the byte tokenizer: one token per letter."""
    return ("abcdefghijklmnopqrstuvwxyz" * (num_tokens // 26 + 1))[:num_tokens]


class ControlTests:
    """What must hold in both schedulings."""

    scheduling = None

    def start(self, *options):
        return Server(*OPTIONS, self.scheduling, *options)

    def post(self, server, target, expected_status=200):
        status, text = server.request("POST", target)
        self.assertEqual(status, expected_status, f"{target}: {text}")
        return json.loads(text)

    def complete(self, server, prompt, max_tokens, **fields):
        status, text = server.request("POST", "/v1/completions", completion_body(prompt, max_tokens, **fields))
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def tells(self, server, paused, sleeping):
        for name, value in (("is_paused", paused), ("is_sleeping", sleeping)):
            self.assertEqual(json.loads(server.request("GET", f"/{name}")[1]), {name: value})
        self.assertEqual(server.request("GET", "/ready")[0], 503 if paused else 200)
        self.assertEqual(server.request("GET", "/health")[0], 200)

    def reasons(self, server):
        state = json.loads(server.request("GET", "/debug/state")[1])
        return [request["reason"] for request in state["requests"]]

    # Scenario O130 for real.
    def test_O130_running_and_new_requests(self):
        num_tokens = 256
        with self.start() as server:
            prompt = letters(100)
            reference = self.complete(server, prompt, num_tokens)["choices"][0]["token_ids"]
            for mode in ("abort", "wait", "keep"):
                running = Receiver(server, prompt, num_tokens)
                running.wait_for_tokens(20)
                self.assertEqual(self.post(server, f"/pause?mode={mode}"), {"status": "paused"})
                self.tells(server, paused=True, sleeping=False)
                if mode != "keep":
                    self.assertEqual(server.metric("sluice_requests"), 0, mode)
                    running.wait()
                late = Receiver(server, "late", 4)
                server.wait_for(lambda: "paused" in self.reasons(server), "the new request waits")
                num_received = None if mode != "keep" else running.wait_until_silent()
                time.sleep(0.3)
                self.assertEqual(late.tokens(), [], mode)
                if mode == "keep":
                    self.assertEqual(len(running.tokens()), num_received)
                    self.assertLess(num_received, num_tokens)
                self.assertEqual(self.post(server, "/resume"), {"status": "resumed"})
                self.tells(server, paused=False, sleeping=False)
                late.wait()
                self.assertEqual(late.finish_reason(), "length")
                running.wait()
                self.assertEqual(running.finish_reason(), "abort" if mode == "abort" else "length")
                self.assertEqual(running.tokens(), reference[:len(running.tokens())])
                self.assertEqual(len(running.tokens()) == num_tokens, mode != "abort")

    def test_requests_survive_sleep(self):
        with self.start() as server:
            prompt = letters(300)
            reference = self.complete(server, prompt, 80)["choices"][0]["token_ids"]
            for target in ("/sleep?mode=keep", "/sleep?level=2&mode=keep&clear_connector_cache=false"):
                running = Receiver(server, prompt, 80)
                running.wait_for_tokens(10)
                self.assertEqual(self.post(server, target), {"status": "sleeping"})
                self.tells(server, paused=True, sleeping=True)
                self.assertIn("woken up", self.post(server, "/resume", 409)["error"]["message"])
                self.tells(server, paused=True, sleeping=True)
                late = Receiver(server, "late", 4)
                server.wait_for(lambda: len(self.reasons(server)) == 2, "both requests wait")
                self.assertEqual(self.reasons(server), ["paused", "paused"])
                self.assertEqual(server.metric("sluice_blocks", state="held"), 0)
                part = "kv_cache" if "level=2" in target else "weights"  # of level 1, weights are there already
                self.assertEqual(self.post(server, f"/wake_up?tags={part}"), {"status": "sleeping"})
                self.assertEqual(self.post(server, "/wake_up"), {"status": "awake"})
                self.tells(server, paused=False, sleeping=False)
                for stream in (running, late):
                    stream.wait()
                    self.assertEqual(stream.finish_reason(), "length")
                self.assertEqual(running.tokens(), reference)

    def test_refuse_while_asleep(self):
        with self.start("--refuse-while-asleep") as server:
            self.post(server, "/pause")
            late = Receiver(server, "late", 4)  # paused is not asleep
            server.wait_for(lambda: self.reasons(server) == ["paused"], "the new request waits")
            self.post(server, "/sleep?mode=keep")
            status, text = server.request("POST", "/v1/completions", completion_body("a", 4))
            self.assertEqual((status, json.loads(text)["error"]["code"]), (503, "asleep"), text)
            self.assertEqual(self.post(server, "/wake_up"), {"status": "awake"})
            late.wait()
            self.assertEqual(late.finish_reason(), "length")
            self.complete(server, "a", 4)

    def test_a_pause_that_takes_too_long_names_what_holds_it(self):
        with self.start("--host-copy-latency-ms", "500") as server:
            prompt = letters(200)
            reference = self.complete(server, prompt, 10)["choices"][0]["token_ids"]
            server.wait_until_idle()
            self.assertTrue(self.post(server, "/reset_prefix_cache")["success"])
            running = Receiver(server, prompt, 10)
            server.wait_for(lambda: server.metric("sluice_transfers_in_flight", direction="load") == 1, "a load")
            answer = self.post(server, "/pause?mode=keep&timeout_ms=20")
            self.assertEqual(answer["status"], "pausing")
            self.assertEqual(len(answer["caches"]["device"]["held_by"]["loads"]), 1, answer)
            self.tells(server, paused=True, sleeping=False)
            self.post(server, "/resume")
            running.wait()
            self.assertEqual(running.tokens(), reference)

    def test_a_reset_can_wait_for_loads(self):
        with self.start("--host-copy-latency-ms", "300") as server:
            prompt = letters(200)
            reference = self.complete(server, prompt, 40)["choices"][0]["token_ids"]
            server.wait_until_idle()
            self.assertTrue(self.post(server, "/reset_prefix_cache")["success"])
            running = Receiver(server, prompt, 40)
            server.wait_for(lambda: server.metric("sluice_transfers_in_flight", direction="load") == 1, "a load")
            target = "/reset_prefix_cache?reset_running_requests=true"
            at_once = self.post(server, target)
            self.assertFalse(at_once["success"])
            self.assertEqual(len(at_once["caches"]["device"]["held_by"]["loads"]), 1)
            self.assertTrue(self.post(server, target + "&wait_ms=20000")["success"])
            self.assertEqual(server.metric("sluice_preemptions_total", cause="reset"), 1)
            running.wait()
            self.assertEqual(running.tokens(), reference)

    def test_the_lower_priority_goes_first(self):
        with self.start("--scheduling-policy", "priority", "--max-num-seqs", "1") as server:
            first = Receiver(server, "first", 60, priority=-9)
            first.wait_for_tokens(1)
            last = Receiver(server, "last", 60, priority=5)
            server.wait_for(lambda: len(self.reasons(server)) == 2, "the second request")
            early = Receiver(server, "next", 60, priority=-5)
            early.wait()
            self.assertIsNone(last.finish_reason())
            last.wait()

    def test_limits_of_a_request(self):
        with self.start() as server:
            prompt = letters(200)
            reference = self.complete(server, prompt, 4, kv_transfer_params={"max_offload_tokens": 100})
            server.wait_until_idle()
            self.assertEqual(server.metric("sluice_slots", state="ready"), 6)
            for limit, num_loaded in ((0, 0), (50, 48), (None, 96)):
                self.assertTrue(self.post(server, "/reset_prefix_cache")["success"])
                hits = server.metric("sluice_prefix_hits_tokens_total", tier="host")
                body = {"max_load_tokens": limit, "max_offload_tokens": 100}
                again = self.complete(server, prompt, 4, kv_transfer_params=body)
                self.assertEqual(server.metric("sluice_prefix_hits_tokens_total", tier="host") - hits, num_loaded)
                self.assertEqual(again["choices"][0]["token_ids"], reference["choices"][0]["token_ids"])
                server.wait_until_idle()


class Sync(ControlTests, unittest.TestCase):
    scheduling = "--no-async-scheduling"


class Async(ControlTests, unittest.TestCase):
    scheduling = "--async-scheduling"


if __name__ == "__main__":
    unittest.main(verbosity=2)
