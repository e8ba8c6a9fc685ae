// Where the rows of a sequence lie: plain data, the same bytes on the host and on a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvmark {

// A run of slots that hold consecutive positions. Memory is cut into blocks of `block_slots` slots;
// a block holds the K tiles of each KV head beside its V tiles, which are read together:
//
//   block: head 0: K tile, K tile, … | V tile, V tile, … || head 1: K … | V … || …
//
// A contiguous sequence is one block (table null).
struct Span {
  const std::byte* pool = nullptr;  // block 0 of this layer
  const int32_t* table = nullptr;   // block of slots [i · block_slots, …); null: block i itself
  int block_slots = 0;              // a multiple of both tile lengths
  int64_t block_bytes = 0;          // stride between blocks, a multiple of 64
  int k_tokens = 1, v_tokens = 1;   // slots of a tile
  int64_t k_tile_bytes = 0, v_tile_bytes = 0;
  int64_t head_bytes = 0;  // stride between KV heads within a block
  int64_t v_offset = 0;    // of the first V tile within a head
  int first_slot = 0;
  int first_position = 0;  // position of first_slot
  int count = 0;

  const std::byte* block(int slot) const {
    const int index = slot / block_slots;
    return pool + int64_t{table ? table[index] : index} * block_bytes;
  }
  // The tile of KV head `head` that holds `slot`, which is row slot % k_tokens of it.
  const std::byte* k_tile(int head, int slot) const {
    return block(slot) + head * head_bytes + int64_t{slot % block_slots / k_tokens} * k_tile_bytes;
  }
  const std::byte* v_tile(int head, int slot) const {
    return block(slot) + head * head_bytes + v_offset +
           int64_t{slot % block_slots / v_tokens} * v_tile_bytes;
  }
};

}  // namespace kvmark
