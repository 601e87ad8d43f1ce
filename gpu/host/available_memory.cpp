// SPDX-License-Identifier: Apache-2.0
#include <sluice/gpu/host/available_memory.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace sluice::inline v0::gpu::host {

namespace {

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// Where a version of cgroups keeps its numbers.
struct cgroup_files {
  const char* membership;  ///< begins, after the number, the line in /proc/self/cgroup; the path follows
  const char* root;
  const char* limit;
  const char* used;
  const char* droppable;  ///< key in memory.stat
};

constexpr std::array<cgroup_files, 2> versions = {{
    {":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
    {"::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
}};

std::optional<std::size_t> read_first(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::size_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// The number behind `key` in a file of lines "key number ...".
std::optional<std::size_t> read_keyed(const std::filesystem::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  std::size_t number = 0;
  while (file >> word) {
    if (word == key) return file >> number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

std::size_t left_in(const std::filesystem::path& folder, const cgroup_files& files) {
  const auto limit = read_first(folder / files.limit);
  const auto used = read_first(folder / files.used);
  if (!limit || !used) return no_limit;
  const std::size_t droppable = read_keyed(folder / "memory.stat", files.droppable).value_or(0);
  return *limit - std::min(*limit, *used - std::min(*used, droppable));
}

std::size_t left_up_from(std::filesystem::path folder, const cgroup_files& files) {
  std::size_t least = no_limit;
  const std::filesystem::path root = files.root;
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    least = std::min(least, left_in(folder, files));
    if (folder == root) break;
  }
  return least;
}

std::size_t left_by_cgroups() {
  std::size_t least = no_limit;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    for (const cgroup_files& files : versions) {
      const std::string membership = files.membership;
      const auto colon = line.find(':');
      if (colon == std::string::npos || line.compare(colon, membership.size(), membership) != 0) continue;
      least = std::min(least, left_up_from(files.root + line.substr(colon + membership.size()), files));
    }
  }
  return least;
}

}  // namespace

std::size_t available_memory_bytes() {
  const std::size_t left = left_by_cgroups();
  if (const auto system_kib = read_keyed("/proc/meminfo", "MemAvailable:")) return std::min(*system_kib * 1024, left);
  return left == no_limit ? 0 : left;
}

}  // namespace sluice::inline v0::gpu::host
