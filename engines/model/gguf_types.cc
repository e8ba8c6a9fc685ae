#include "engines/model/gguf_types.h"

#include <array>
#include <cstring>

#include "engines/core/bits.h"
#include "engines/core/check.h"

// Multi-byte fields are little-endian. All products below (an f16 scale × a 4- to 8-bit sub-scale ×
// a quantum of up to 8 bits) fit into the 24 bits of a float's significand, so each value is
// rounded at most once and compilers that contract to fused multiply-adds give the same bits.

namespace kvmark {
namespace {

using Bytes = const uint8_t*;

float load_f32(Bytes p) {
  float value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

uint16_t load_u16(Bytes p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }

uint32_t load_u32(Bytes p) { return load_u16(p) | static_cast<uint32_t>(load_u16(p + 2)) << 16; }

float load_f16(Bytes p) { return f16_to_f32(load_u16(p)); }

void decode_f32(Bytes p, float* out) { *out = load_f32(p); }

void decode_f16(Bytes p, float* out) { *out = load_f16(p); }

void decode_bf16(Bytes p, float* out) { *out = bf16_to_f32(load_u16(p)); }

// The formats with 32 values a block keep value j in the low nibble of byte j and value j + 16 in
// its high nibble; the fifth bit of value j is bit j of a 32-bit word.
int nibble(Bytes quanta, int j) { return j < 16 ? quanta[j] & 15 : quanta[j - 16] >> 4; }

int fifth_bit(uint32_t high, int j) { return static_cast<int>(high >> j & 1) << 4; }

// f16 scale, 16 bytes of nibbles: −8 … 7 times the scale.
void decode_q4_0(Bytes p, float* out) {
  const float scale = load_f16(p);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(nibble(p + 2, j) - 8) * scale;
}

// f16 scale, f16 minimum, nibbles: 0 … 15 times the scale, plus the minimum.
void decode_q4_1(Bytes p, float* out) {
  const float scale = load_f16(p), minimum = load_f16(p + 2);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(nibble(p + 4, j)) * scale + minimum;
}

// f16 scale, fifth bits, nibbles: −16 … 15 times the scale.
void decode_q5_0(Bytes p, float* out) {
  const float scale = load_f16(p);
  const uint32_t high = load_u32(p + 2);
  for (int j = 0; j < 32; ++j) {
    out[j] = static_cast<float>((nibble(p + 6, j) | fifth_bit(high, j)) - 16) * scale;
  }
}

// f16 scale, f16 minimum, fifth bits, nibbles: 0 … 31 times the scale, plus the minimum.
void decode_q5_1(Bytes p, float* out) {
  const float scale = load_f16(p), minimum = load_f16(p + 2);
  const uint32_t high = load_u32(p + 4);
  for (int j = 0; j < 32; ++j) {
    out[j] = static_cast<float>(nibble(p + 8, j) | fifth_bit(high, j)) * scale + minimum;
  }
}

// f16 scale, 32 signed bytes.
void decode_q8_0(Bytes p, float* out) {
  const float scale = load_f16(p);
  for (int j = 0; j < 32; ++j) out[j] = static_cast<float>(static_cast<int8_t>(p[2 + j])) * scale;
}

// The K formats hold 256 values in sub-blocks of 16 or 32, whose small integer scales share an f16
// super-scale. Two-bit fields: each half of 128 values has 32 bytes; value i of the half lies in
// byte i % 32, bits 2·(i / 32) and up.
int two_bits(Bytes quanta, int i) {
  return quanta[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

// Scales and minima of 4 bits for 16 values each (scale in the low nibble), two-bit quanta, f16
// super-scale, f16 super-minimum.
void decode_q2_k(Bytes p, float* out) {
  const Bytes sub = p, quanta = p + 16;
  const float scale = load_f16(p + 80), minimum = load_f16(p + 82);
  for (int i = 0; i < 256; ++i) {
    const int s = sub[i / 16];
    out[i] = scale * static_cast<float>(s & 15) * static_cast<float>(two_bits(quanta, i)) -
             minimum * static_cast<float>(s >> 4);
  }
}

// Sixteen 6-bit scales in 12 bytes, biased by 32: low four bits as nibbles of the first 8 bytes
// (scales 0–7 low, 8–15 high), top two bits of scale g in byte 8 + g % 4, bits 2·(g / 4) and up.
int q3_scale(Bytes packed, int g) {
  const int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4;
  const int high = packed[8 + g % 4] >> (g / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

// Third bits (bit i / 32 of byte i % 32; a clear bit subtracts 4), two-bit quanta, scales of 16
// values, f16 super-scale.
void decode_q3_k(Bytes p, float* out) {
  const Bytes third = p, quanta = p + 32, scales = p + 96;
  const float scale = load_f16(p + 108);
  for (int i = 0; i < 256; ++i) {
    const int quantum = two_bits(quanta, i) - (third[i % 32] >> (i / 32) & 1 ? 0 : 4);
    out[i] = scale * static_cast<float>(q3_scale(scales, i / 16)) * static_cast<float>(quantum);
  }
}

// Eight 6-bit scales and eight 6-bit minima in 12 bytes. Those of sub-blocks 0–3 are the low six
// bits of bytes 0–3 and 4–7; those of 4–7 have their low four bits in bytes 8–11 (scale in the low
// nibble) and their top two bits where the first four left room.
struct ScaleMin {
  int scale, minimum;
};
ScaleMin k_scale_min(Bytes packed, int g) {
  if (g < 4) return {packed[g] & 63, packed[g + 4] & 63};
  return {(packed[g + 4] & 15) | packed[g - 4] >> 6 << 4, packed[g + 4] >> 4 | packed[g] >> 6 << 4};
}

// Four-bit quanta of Q4_K and Q5_K: 64 values in 32 bytes, the first 32 in the low nibbles.
int k_nibble(Bytes quanta, int i) { return quanta[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15; }

// f16 super-scale, f16 super-minimum, packed scales and minima of 32 values, nibbles.
void decode_q4_k(Bytes p, float* out) {
  const float scale = load_f16(p), minimum = load_f16(p + 2);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sub = k_scale_min(p + 4, g);
    const float step = scale * static_cast<float>(sub.scale);
    const float offset = minimum * static_cast<float>(sub.minimum);
    for (int i = g * 32; i < g * 32 + 32; ++i) {
      out[i] = step * static_cast<float>(k_nibble(p + 16, i)) - offset;
    }
  }
}

// As Q4_K, with fifth bits (bit i / 32 of byte i % 32) before the nibbles.
void decode_q5_k(Bytes p, float* out) {
  const float scale = load_f16(p), minimum = load_f16(p + 2);
  const Bytes fifth = p + 16, quanta = p + 48;
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sub = k_scale_min(p + 4, g);
    const float step = scale * static_cast<float>(sub.scale);
    const float offset = minimum * static_cast<float>(sub.minimum);
    for (int i = g * 32; i < g * 32 + 32; ++i) {
      const int quantum = k_nibble(quanta, i) | (fifth[i % 32] >> g & 1) << 4;
      out[i] = step * static_cast<float>(quantum) - offset;
    }
  }
}

// Nibbles (each half of 128 values has 64 bytes, its first 64 values in the low nibbles), top two
// bits as two-bit quanta, signed 8-bit scales of 16 values, f16 super-scale. Quanta are biased
// by 32.
void decode_q6_k(Bytes p, float* out) {
  const Bytes low = p, high = p + 128, scales = p + 192;
  const float scale = load_f16(p + 208);
  for (int i = 0; i < 256; ++i) {
    const int nibbles = low[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
    const int quantum = (nibbles | two_bits(high, i) << 4) - 32;
    out[i] = scale * static_cast<float>(static_cast<int8_t>(scales[i / 16])) *
             static_cast<float>(quantum);
  }
}

template <int kValues, int kBytes, void (*kBlock)(Bytes, float*)>
void decode_blocks(const std::byte* bytes, int64_t blocks, float* out) {
  const Bytes p = reinterpret_cast<Bytes>(bytes);
  for (int64_t b = 0; b < blocks; ++b) kBlock(p + b * kBytes, out + b * kValues);
}

template <int kValues, int kBytes, void (*kBlock)(Bytes, float*)>
constexpr GgufTypeInfo entry(GgufType type, std::string_view name) {
  return {type, name, kValues, kBytes, decode_blocks<kValues, kBytes, kBlock>};
}

constexpr std::array kTypes = {
    entry<1, 4, decode_f32>(GgufType::f32, "F32"),
    entry<1, 2, decode_f16>(GgufType::f16, "F16"),
    entry<1, 2, decode_bf16>(GgufType::bf16, "BF16"),
    entry<32, 18, decode_q4_0>(GgufType::q4_0, "Q4_0"),
    entry<32, 20, decode_q4_1>(GgufType::q4_1, "Q4_1"),
    entry<32, 22, decode_q5_0>(GgufType::q5_0, "Q5_0"),
    entry<32, 24, decode_q5_1>(GgufType::q5_1, "Q5_1"),
    entry<32, 34, decode_q8_0>(GgufType::q8_0, "Q8_0"),
    entry<256, 84, decode_q2_k>(GgufType::q2_k, "Q2_K"),
    entry<256, 110, decode_q3_k>(GgufType::q3_k, "Q3_K"),
    entry<256, 144, decode_q4_k>(GgufType::q4_k, "Q4_K"),
    entry<256, 176, decode_q5_k>(GgufType::q5_k, "Q5_K"),
    entry<256, 210, decode_q6_k>(GgufType::q6_k, "Q6_K"),
};

const GgufTypeInfo& type_info(GgufType type) {
  const GgufTypeInfo* info = find_gguf_type(static_cast<uint32_t>(type));
  check(info != nullptr, "GGUF type {} is not in the table", static_cast<uint32_t>(type));
  return *info;
}

}  // namespace

const GgufTypeInfo* find_gguf_type(uint32_t number) {
  for (const GgufTypeInfo& info : kTypes) {
    if (static_cast<uint32_t>(info.type) == number) return &info;
  }
  return nullptr;
}

std::string_view gguf_type_name(GgufType type) { return type_info(type).name; }

void decode_gguf_row(const GgufTensor& tensor, int64_t row, float* out) {
  check(row >= 0 && row < tensor.rows, "row {} of tensor {}, which has {}", row, tensor.name,
        tensor.rows);
  const GgufTypeInfo& info = type_info(tensor.type);
  const int64_t blocks = tensor.cols / info.block_values;
  info.decode(tensor.bytes.data() + row * blocks * info.block_bytes, blocks, out);
}

}  // namespace kvmark
