#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds, starts sluice-serve with the tiny model and says how to talk to it. Ctrl-C stops it.
#
# usage: apps/demo.sh [SLUICE_SERVE_OPTION...]     for example: apps/demo.sh --port 9000
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${SLUICE_BUILD_JOBS:-2}
step="start"
log=""
server_pid=""

fail() {
  trap - ERR
  echo "apps/demo.sh: FAILED in step: $step${1:+: $1}" >&2
  exit 1
}
trap 'fail "exit code $?"' ERR
trap '[[ -z $log ]] || rm -f "$log"' EXIT

begin() {
  step=$1
  echo "== $step"
}

# The URL that the server prints once it listens; fails when the server ends before that or takes a minute.
wait_for_url() {
  local attempt
  for ((attempt = 0; attempt < 600; ++attempt)); do
    url=$(sed -n 's#.*listening on \(http://[^ ]*\).*#\1#p' "$log" | head -n 1)
    if [[ -n $url ]] && curl -fsS -m 2 -o /dev/null "$url/health" 2> /dev/null; then
      return 0
    fi
    kill -0 "$server_pid" 2> /dev/null || fail "the server ended: $(tail -n 1 "$log")"
    sleep 0.1
  done
  kill "$server_pid" 2> /dev/null || true
  fail "no answer within 60 s: $(tail -n 1 "$log")"
}

begin "install missing packages"
./tests/install_packages.sh
begin "configure"
cmake --preset release > /dev/null
begin "build (a few minutes the first time)"
cmake --build build/release -j "$jobs" --target sluice-serve

begin "start sluice-serve with the tiny model"
log=$(mktemp)
# In a session of its own, so that one Ctrl-C is one signal for the server: a second one would hurry it.
setsid ./build/release/bin/sluice-serve "$@" > >(tee "$log") 2>&1 &
server_pid=$!
trap 'kill -TERM "$server_pid" 2> /dev/null || true' INT TERM
wait_for_url

cat << TEXT

sluice-serve is ready at $url. Try it from another terminal (the tiny model has random weights: it answers gibberish):

  curl -N $url/v1/completions -H 'Content-Type: application/json' -d '{"model": "tiny", "prompt": "Hello", "max_tokens": 32, "stream": true}'

Ctrl-C here stops the server.
TEXT

step="serve"
# A signal interrupts the first wait; the next one waits until the server has finished its open streams.
status=0
wait "$server_pid" || status=$?
while kill -0 "$server_pid" 2> /dev/null; do
  status=0
  wait "$server_pid" || status=$?
done
[[ $status -eq 0 ]] || fail "the server ended with exit code $status"
echo "Stopped."
