#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages that building and testing need, if any is missing; says first which. The one list
# of packages of this repository. Needs root or a sudo that does not ask; changes nothing when all is there.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache git curl python3
  libcaf-dev libspdlog-dev libexpected-dev libssl-dev prometheus-cpp-dev
  libboost-dev libcli11-dev nlohmann-json3-dev libgtest-dev
)

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "This is not a Debian system: assuming that what these packages provide is installed: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$package" 2> /dev/null || true)
  [[ $status == ii* ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

echo "Installing ${#missing[@]} missing Debian packages with apt-get: ${missing[*]}"
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo > /dev/null || ! sudo -n true 2> /dev/null; then
    echo "Not root, and no sudo that works without a password. Run this once as root, then try again:" >&2
    echo "  apt-get update && apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
