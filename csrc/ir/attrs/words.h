/* Attributes whose values are words: each set of words is one list, with the number that XLA's protocol and StableHLO's
 * bytecode give each word, and its spelling in HLO's text and in MLIR's ("" where a syntax has none). In memory a word
 * is its number, of one of these types: readers turn words into numbers, printers numbers into words. */
#ifndef XLAC_IR_ATTRS_WORDS_H
#define XLAC_IR_ATTRS_WORDS_H

/* W(set, WORD, number, HLO's spelling, MLIR's). Numbers rise from 0, one at a time. */
#define IR_DIRECTION_WORDS(W)     \
  W(DIRECTION, EQ, 0, "EQ", "EQ") \
  W(DIRECTION, NE, 1, "NE", "NE") \
  W(DIRECTION, GE, 2, "GE", "GE") \
  W(DIRECTION, GT, 3, "GT", "GT") \
  W(DIRECTION, LE, 4, "LE", "LE") \
  W(DIRECTION, LT, 5, "LT", "LT")
/* What a comparison looks at. NONE: what is usual for the element type. */
#define IR_COMPARISON_WORDS(W)                             \
  W(COMPARISON, NONE, 0, "", "NOTYPE")                     \
  W(COMPARISON, FLOAT, 1, "FLOAT", "FLOAT")                \
  W(COMPARISON, TOTALORDER, 2, "TOTALORDER", "TOTALORDER") \
  W(COMPARISON, SIGNED, 3, "SIGNED", "SIGNED")             \
  W(COMPARISON, UNSIGNED, 4, "UNSIGNED", "UNSIGNED")
#define IR_DISTRIBUTION_WORDS(W)                        \
  W(DISTRIBUTION, INVALID, 0, "rng_invalid", "")        \
  W(DISTRIBUTION, UNIFORM, 1, "rng_uniform", "UNIFORM") \
  W(DISTRIBUTION, NORMAL, 2, "rng_normal", "NORMAL")
#define IR_RNG_WORDS(W)                              \
  W(RNG, DEFAULT, 0, "rng_default", "DEFAULT")       \
  W(RNG, THREE_FRY, 1, "rng_three_fry", "THREE_FRY") \
  W(RNG, PHILOX, 2, "rng_philox", "PHILOX")
/* How a dot computes; MLIR has a struct for it. */
#define IR_DOT_WORDS(W)                                                   \
  W(DOT, UNSET, 0, "unset", "")                                           \
  W(DOT, F8_F8_F32, 1, "dot_any_f8_any_f8_f32", "")                       \
  W(DOT, F8_F8_F32_FAST_ACCUM, 2, "dot_any_f8_any_f8_f32_fast_accum", "") \
  W(DOT, F16_F16_F16, 3, "dot_f16_f16_f16", "")                           \
  W(DOT, F16_F16_F32, 4, "dot_f16_f16_f32", "")                           \
  W(DOT, BF16_BF16_BF16, 5, "dot_bf16_bf16_bf16", "")                     \
  W(DOT, BF16_BF16_F32, 6, "dot_bf16_bf16_f32", "")                       \
  W(DOT, BF16_BF16_F32_X3, 7, "dot_bf16_bf16_f32_x3", "")                 \
  W(DOT, BF16_BF16_F32_X6, 8, "dot_bf16_bf16_f32_x6", "")                 \
  W(DOT, TF32_TF32_F32, 9, "dot_tf32_tf32_f32", "")                       \
  W(DOT, TF32_TF32_F32_X3, 10, "dot_tf32_tf32_f32_x3", "")                \
  W(DOT, F32_F32_F32, 11, "dot_f32_f32_f32", "")                          \
  W(DOT, F64_F64_F64, 12, "dot_f64_f64_f64", "")                          \
  W(DOT, BF16_BF16_F32_X9, 13, "dot_bf16_bf16_f32_x9", "")                \
  W(DOT, F8_F8_ANY, 14, "dot_any_f8_any_f8_any", "")                      \
  W(DOT, F8_F8_ANY_FAST_ACCUM, 15, "dot_any_f8_any_f8_any_fast_accum", "")
#define IR_FFT_WORDS(W)           \
  W(FFT, FFT, 0, "FFT", "FFT")    \
  W(FFT, IFFT, 1, "IFFT", "IFFT") \
  W(FFT, RFFT, 2, "RFFT", "RFFT") \
  W(FFT, IRFFT, 3, "IRFFT", "IRFFT")
#define IR_PADDING_WORDS(W)                     \
  W(PADDING, INVALID, 0, "PADDING_INVALID", "") \
  W(PADDING, VALID, 1, "PADDING_VALID", "")     \
  W(PADDING, SAME, 2, "PADDING_SAME", "")
#define IR_SCHEDULE_WORDS(W)                    \
  W(SCHEDULE, NONE, 0, "SCHEDULE_NONE", "")     \
  W(SCHEDULE, LATEST, 1, "SCHEDULE_LATEST", "") \
  W(SCHEDULE, EARLIEST, 2, "SCHEDULE_EARLIEST", "")
/* The interface of a custom call's target. HLO's text leaves 0 out, and means 1 by it. */
#define IR_API_WORDS(W)                                                                                     \
  W(API, UNSPECIFIED, 0, "", "API_VERSION_UNSPECIFIED")                                                     \
  W(API, ORIGINAL, 1, "API_VERSION_ORIGINAL", "API_VERSION_ORIGINAL")                                       \
  W(API, STATUS, 2, "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING")                         \
  W(API, STATUS_UNIFIED, 3, "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_STATUS_RETURNING_UNIFIED") \
  W(API, TYPED_FFI, 4, "API_VERSION_TYPED_FFI", "API_VERSION_TYPED_FFI")
#define IR_FUSION_WORDS(W)            \
  W(FUSION, LOOP, 0, "kLoop", "")     \
  W(FUSION, INPUT, 1, "kInput", "")   \
  W(FUSION, OUTPUT, 2, "kOutput", "") \
  W(FUSION, CUSTOM, 3, "kCustom", "")
#define IR_PRECISION_WORDS(W)                    \
  W(PRECISION, DEFAULT, 0, "default", "DEFAULT") \
  W(PRECISION, HIGH, 1, "high", "HIGH")          \
  W(PRECISION, HIGHEST, 2, "highest", "HIGHEST")
#define IR_TRANSPOSE_WORDS(W)                                        \
  W(TRANSPOSE, INVALID, 0, "TRANSPOSE_INVALID", "TRANSPOSE_INVALID") \
  W(TRANSPOSE, NO, 1, "NO_TRANSPOSE", "NO_TRANSPOSE")                \
  W(TRANSPOSE, YES, 2, "TRANSPOSE", "TRANSPOSE")                     \
  W(TRANSPOSE, ADJOINT, 3, "ADJOINT", "ADJOINT")
#define IR_CONVOLUTION_WORDS(W)         \
  W(CONVOLUTION, UNSET, 0, "unset", "") \
  W(CONVOLUTION, FPROP, 1, "fprop", "") \
  W(CONVOLUTION, DGRAD, 2, "dgrad", "") \
  W(CONVOLUTION, WGRAD, 3, "wgrad", "")
/* Whether a scan's computation is associative. */
#define IR_TRUTH_WORDS(W)       \
  W(TRUTH, UNKNOWN, 0, "", "")  \
  W(TRUTH, TRUE, 1, "true", "") \
  W(TRUTH, FALSE, 2, "false", "")
#define IR_SHUFFLE_WORDS(W)           \
  W(SHUFFLE, ROTATE, 0, "rotate", "") \
  W(SHUFFLE, PERMUTE, 1, "permute", "")
/* How accurate a function is asked to be. */
#define IR_ACCURACY_WORDS(W)                    \
  W(ACCURACY, DEFAULT, 0, "default", "DEFAULT") \
  W(ACCURACY, HIGHEST, 1, "highest", "HIGHEST") \
  W(ACCURACY, TOLERANCE, 2, "", "TOLERANCE")

#define IR_WORD_NUMBER(set, word, number, hlo, mlir) IR_##set##_##word = number,
typedef enum ir_direction { IR_DIRECTION_WORDS(IR_WORD_NUMBER) } ir_direction;
typedef enum ir_comparison { IR_COMPARISON_WORDS(IR_WORD_NUMBER) } ir_comparison;
typedef enum ir_distribution { IR_DISTRIBUTION_WORDS(IR_WORD_NUMBER) } ir_distribution;
typedef enum ir_rng { IR_RNG_WORDS(IR_WORD_NUMBER) } ir_rng;
typedef enum ir_dot { IR_DOT_WORDS(IR_WORD_NUMBER) } ir_dot;
typedef enum ir_fft { IR_FFT_WORDS(IR_WORD_NUMBER) } ir_fft;
typedef enum ir_padding_type { IR_PADDING_WORDS(IR_WORD_NUMBER) } ir_padding_type;
typedef enum ir_schedule { IR_SCHEDULE_WORDS(IR_WORD_NUMBER) } ir_schedule;
typedef enum ir_api { IR_API_WORDS(IR_WORD_NUMBER) } ir_api;
typedef enum ir_fusion { IR_FUSION_WORDS(IR_WORD_NUMBER) } ir_fusion;
typedef enum ir_precision { IR_PRECISION_WORDS(IR_WORD_NUMBER) } ir_precision;
typedef enum ir_transpose { IR_TRANSPOSE_WORDS(IR_WORD_NUMBER) } ir_transpose;
typedef enum ir_convolution { IR_CONVOLUTION_WORDS(IR_WORD_NUMBER) } ir_convolution;
typedef enum ir_truth { IR_TRUTH_WORDS(IR_WORD_NUMBER) } ir_truth;
typedef enum ir_shuffle { IR_SHUFFLE_WORDS(IR_WORD_NUMBER) } ir_shuffle;
typedef enum ir_accuracy_mode { IR_ACCURACY_WORDS(IR_WORD_NUMBER) } ir_accuracy_mode;
#undef IR_WORD_NUMBER

/* The words of a set by their numbers, "" where the syntax has none, NULL at the end. */
#define IR_WORD_OF_HLO(set, word, number, hlo, mlir) [number] = hlo,
#define IR_WORD_OF_MLIR(set, word, number, hlo, mlir) [number] = mlir,
#define IR_HLO_WORDS(set) ((const char *const[]){IR_##set##_WORDS(IR_WORD_OF_HLO) 0})
#define IR_MLIR_WORDS(set) ((const char *const[]){IR_##set##_WORDS(IR_WORD_OF_MLIR) 0})

#endif
