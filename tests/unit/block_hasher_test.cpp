// SPDX-License-Identifier: Apache-2.0
#include <sluice/actors/scheduler/block_hasher.hpp>

#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace sluice {
namespace {

const std::vector<token_id> tokens{1, 2, 3, -4, 5, 6, 7, 100000};

content_identity identity() { return {"tiny", "f32", 4096, 4, group_id{0}}; }

std::vector<content_key> keys_of(const content_identity& of, std::string_view salt = {},
                                 const std::vector<token_id>& with = tokens) {
  std::vector<content_key> keys;
  block_hasher(of).extend(with, salt, keys);
  return keys;
}

std::string hex(const content_key& key) {
  std::string text;
  for (const auto byte : key) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", byte);
    text += digits;
  }
  return text;
}

// Guards: keys are the same after a restart and on another machine. Computed with python3:
//   import hashlib, struct
//   n = lambda x: struct.pack("<Q", x)
//   t = lambda s: n(len(s)) + s
//   key = hashlib.sha256(t(b"sluice-kv") + n(1) + t(b"tiny") + t(b"f32") + n(4096) + n(4) + n(0) + t(b"")).digest()
//   for block in ((1, 2, 3, -4), (5, 6, 7, 100000)):
//     key = hashlib.sha256(key + struct.pack("<4i", *block)).digest(); print(key.hex())
TEST(block_hasher, a_known_key) {
  const auto keys = keys_of(identity());
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(hex(keys[0]), "19e9814af4c65cb9c67e95174428b894206cd04cd4d0c251256eeab25cc797e2");
  EXPECT_EQ(hex(keys[1]), "600951e96c788597fcae6175c48e3516fac0cf3419249bbebdd522a587b7ce36");
}

// Guards: engines whose KV is not interchangeable, and requests of different salts, never share a key.
TEST(block_hasher, every_part_of_the_identity_counts) {
  std::vector<content_identity> identities(6, identity());
  identities[1].model = "tiny2";
  identities[2].dtype = "f16";
  identities[3].bytes_per_block = 8192;
  identities[4].block_size = 2;
  identities[5].group = {1};
  std::set<content_key> first_keys;
  for (const auto& one : identities) first_keys.insert(keys_of(one).front());
  first_keys.insert(keys_of(identity(), "salt").front());
  first_keys.insert(keys_of(identity(), "salt2").front());
  EXPECT_EQ(first_keys.size(), 8U);
}

// Guards: two neighbouring texts never run into one another.
TEST(block_hasher, texts_are_told_apart_by_length) {
  auto one = identity(), other = identity();
  one.model = "ab", one.dtype = "c";
  other.model = "a", other.dtype = "bc";
  EXPECT_NE(keys_of(one), keys_of(other));
}

// Guards: a block's key covers everything before it and nothing after it.
TEST(block_hasher, a_key_covers_its_prefix) {
  auto changed = tokens;
  changed[0] = 9;
  const auto keys = keys_of(identity()), other = keys_of(identity(), {}, changed);
  EXPECT_NE(keys[0], other[0]);
  EXPECT_NE(keys[1], other[1]);
  changed = tokens;
  changed[7] = 9;
  const auto late = keys_of(identity(), {}, changed);
  EXPECT_EQ(keys[0], late[0]);
  EXPECT_NE(keys[1], late[1]);
}

// Guards: equal blocks at different positions have different keys.
TEST(block_hasher, position_counts) {
  const auto keys = keys_of(identity(), {}, {1, 2, 3, 4, 1, 2, 3, 4});
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_NE(keys[0], keys[1]);
}

// Guards: decoding token by token gives the keys of the whole sequence.
TEST(block_hasher, extending_step_by_step_equals_all_at_once) {
  const block_hasher hasher(identity());
  std::vector<token_id> sequence;
  std::vector<content_key> keys;
  for (token_id token = 0; token < 41; ++token) {
    sequence.push_back(token * 7 - 3);
    hasher.extend(sequence, "s", keys);
    ASSERT_EQ(keys.size(), sequence.size() / 4);
  }
  EXPECT_EQ(keys, keys_of(identity(), "s", sequence));
}

// Guards: a partial block gets no key, and keys that are there are left alone.
TEST(block_hasher, partial_blocks_get_no_key) {
  EXPECT_TRUE(keys_of(identity(), {}, {}).empty());
  EXPECT_TRUE(keys_of(identity(), {}, {1, 2, 3}).empty());
  EXPECT_EQ(keys_of(identity(), {}, {1, 2, 3, 4, 5}).size(), 1U);
  auto keys = keys_of(identity());
  const auto before = keys;
  block_hasher(identity()).extend(tokens, {}, keys);
  EXPECT_EQ(keys, before);
}

// Guards: one hasher used for several requests keeps nothing from one to the next.
TEST(block_hasher, calls_do_not_influence_each_other) {
  block_hasher first(identity());
  std::vector<content_key> a, b;
  first.extend(std::vector<token_id>{9, 9, 9, 9}, "x", a);
  const block_hasher moved(std::move(first));
  moved.extend(tokens, {}, b);
  EXPECT_EQ(b, keys_of(identity()));
}

}  // namespace
}  // namespace sluice
