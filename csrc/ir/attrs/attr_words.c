/* The words that attributes of kind NAME and NAMES may hold, as XLA 0.10.2's reader has them. A few of them say
 * "invalid", and the verifier refuses those. */
#include "../opcode.h"

static const char *const directions[] = {"EQ", "NE", "GE", "GT", "LE", "LT", NULL};
static const char *const comparison_types[] = {"FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED", NULL};
static const char *const distributions[] = {"rng_uniform", "rng_normal", "rng_invalid", NULL};
static const char *const rng_algorithms[] = {"rng_default", "rng_three_fry", "rng_philox", NULL};
static const char *const dot_algorithms[] = {"unset",
                                             "dot_any_f8_any_f8_f32",
                                             "dot_any_f8_any_f8_f32_fast_accum",
                                             "dot_any_f8_any_f8_any",
                                             "dot_any_f8_any_f8_any_fast_accum",
                                             "dot_f16_f16_f16",
                                             "dot_f16_f16_f32",
                                             "dot_bf16_bf16_bf16",
                                             "dot_bf16_bf16_f32",
                                             "dot_bf16_bf16_f32_x3",
                                             "dot_bf16_bf16_f32_x6",
                                             "dot_bf16_bf16_f32_x9",
                                             "dot_tf32_tf32_f32",
                                             "dot_tf32_tf32_f32_x3",
                                             "dot_f32_f32_f32",
                                             "dot_f64_f64_f64",
                                             NULL};
static const char *const fft_types[] = {"FFT", "IFFT", "RFFT", "IRFFT", NULL};
static const char *const padding_types[] = {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME", NULL};
static const char *const schedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST", NULL};
static const char *const api_versions[] = {"API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                           "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI", NULL};
static const char *const fusion_kinds[] = {"kLoop", "kInput", "kOutput", "kCustom", NULL};
static const char *const precisions[] = {"default", "high", "highest", NULL};
static const char *const transposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT", "TRANSPOSE_INVALID", NULL};
static const char *const convolution_kinds[] = {"unset", "fprop", "wgrad", "dgrad", NULL};
static const char *const truths[] = {"true", "false", NULL};
static const char *const shuffle_modes[] = {"rotate", "permute", NULL};

const char *const *ir_attr_words(unsigned opcode, ir_attr_key key) {
  switch (key) {
    case IR_ATTR_DIRECTION:
      return directions;
    case IR_ATTR_TYPE:
      return comparison_types;
    case IR_ATTR_DISTRIBUTION:
      return distributions;
    case IR_ATTR_ALGORITHM:
      return opcode == IR_OP_RNG_BIT_GENERATOR ? rng_algorithms : dot_algorithms;
    case IR_ATTR_FFT_TYPE:
      return fft_types;
    case IR_ATTR_PADDING_TYPE:
      return padding_types;
    case IR_ATTR_SCHEDULE:
      return schedules;
    case IR_ATTR_API_VERSION:
      return api_versions;
    case IR_ATTR_KIND:
      return fusion_kinds;
    case IR_ATTR_OPERAND_PRECISION:
      return precisions;
    case IR_ATTR_TRANSPOSE_A:
      return transposes;
    case IR_ATTR_IS_ASSOCIATIVE:
      return truths;
    case IR_ATTR_CONVOLUTION_KIND:
      return convolution_kinds;
    case IR_ATTR_MODE:
      return shuffle_modes;
    default:
      return NULL;
  }
}
