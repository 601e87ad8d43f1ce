// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/request/text_assembler.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::inline v0 {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

enum class scan_result { character, incomplete, invalid };

struct scanned {
  scan_result result;
  std::size_t num_bytes;  // of the character; of an invalid sequence what one U+FFFD stands for
};

std::uint8_t byte_at(std::string_view bytes, std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); }

/// The first character, by table 3-7 of the Unicode standard; an ill-formed sequence ends before the first byte that
/// cannot continue it.
scanned scan(std::string_view bytes) {
  const auto lead = byte_at(bytes, 0);
  if (lead < 0x80) return {scan_result::character, 1};
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF ? 2 : lead >= 0xE0 && lead <= 0xEF ? 3
                             : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (length == 0) return {scan_result::invalid, 1};
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {scan_result::incomplete, i};
    const std::uint8_t low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte_at(bytes, i) < low || byte_at(bytes, i) > high) return {scan_result::invalid, i};
  }
  return {scan_result::character, length};
}

}  // namespace

text_assembler::text_assembler(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string text_assembler::add(std::string_view bytes) {
  undecoded_.append(bytes);
  decode(false);
  if (const auto match = first_match()) {
    is_stopped_ = true;
    return std::exchange(held_, {}).substr(0, *match);
  }
  const auto num_certain = held_.size() - num_held_back();
  auto text = held_.substr(0, num_certain);
  held_.erase(0, num_certain);
  return text;
}

std::string text_assembler::flush() {
  decode(true);
  return std::exchange(held_, {});
}

void text_assembler::decode(bool is_last) {
  std::size_t at = 0;
  while (at < undecoded_.size()) {
    const auto rest = std::string_view(undecoded_).substr(at);
    const auto found = scan(rest);
    if (found.result == scan_result::incomplete && !is_last) break;
    held_.append(found.result == scan_result::character ? rest.substr(0, found.num_bytes) : replacement);
    at += found.num_bytes;
  }
  undecoded_.erase(0, at);
}

/// Where the match begins that is complete first; of several the longest. So the text does not depend on where tokens
/// end.
std::optional<std::size_t> text_assembler::first_match() const {
  std::optional<std::size_t> first;
  std::size_t first_end = std::string::npos;
  for (const auto& stop : stops_) {
    const auto at = held_.find(stop);
    if (at == std::string::npos) continue;
    const auto end = at + stop.size();
    if (end > first_end || (end == first_end && at >= *first)) continue;
    first = at;
    first_end = end;
  }
  return first;
}

/// The longest end of `held_` that a stop string begins with.
std::size_t text_assembler::num_held_back() const {
  std::size_t longest = 0;
  for (const auto& stop : stops_)
    for (auto length = std::min(stop.size() - 1, held_.size()); length > longest; --length)
      if (std::string_view(held_).substr(held_.size() - length) == std::string_view(stop).substr(0, length))
        longest = length;
  return longest;
}

}  // namespace sluice::inline v0
