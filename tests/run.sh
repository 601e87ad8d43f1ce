#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds and runs every test: with the address sanitizer, then optimised with warnings as
# errors. Ends with ctest's summary; on a failure it says which step failed. Safe to run again: it builds what changed.
#
# usage: tests/run.sh [CTEST_OPTION...]     for example: tests/run.sh -R protocol
set -Eeuo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${SLUICE_BUILD_JOBS:-2}
step="start"
trap 'code=$?; trap - ERR; echo "tests/run.sh: FAILED in step: $step (exit code $code)" >&2; exit "$code"' ERR

begin() {
  step=$1
  echo "== $step"
}

begin "install missing packages"
./tests/install_packages.sh

for preset in asan release; do
  begin "configure $preset"
  cmake --preset "$preset" -DSLUICE_WERROR=ON -DSLUICE_BUILD_APPS=ON -DSLUICE_BUILD_TESTS=ON
  begin "build $preset"
  cmake --build "build/$preset" -j "$jobs"
done

for preset in asan release; do
  begin "test $preset"
  ctest --preset "$preset" -j "$jobs" "$@"
done
