#include "nearest.h"

#include <assert.h>
#include <string.h>

/* What other systems call an op, NumPy and PyTorch above all: no number of edits leads from there to its name here. */
static const struct {
  ir_opcode op;
  const char *names;
} elsewhere[] = {
    {IR_OP_EXP, "exp"},
    {IR_OP_LOG, "ln"},
    {IR_OP_LOGISTIC, "sigmoid"},
    {IR_OP_SINE, "sin"},
    {IR_OP_COSINE, "cos"},
    {IR_OP_NEGATE, "neg minus"},
    {IR_OP_MAXIMUM, "max relu"},
    {IR_OP_MINIMUM, "min"},
    {IR_OP_MULTIPLY, "mul times square"},
    {IR_OP_SUBTRACT, "sub"},
    {IR_OP_DIVIDE, "div reciprocal"},
    {IR_OP_REMAINDER, "mod rem fmod"},
    {IR_OP_POWER, "pow"},
    {IR_OP_COMPARE, "cmp eq ne lt le gt ge equal less greater"},
    {IR_OP_SELECT, "where"},
    {IR_OP_CLAMP, "clip"},
    {IR_OP_CONVERT, "cast astype"},
    {IR_OP_REDUCE, "sum mean prod any all argmax argmin"},
    {IR_OP_DOT, "matmul einsum gemm mm bmm"},
    {IR_OP_CONVOLUTION, "conv conv2d"},
    {IR_OP_CONCATENATE, "concat cat stack"},
    {IR_OP_IOTA, "arange range"},
    {IR_OP_BROADCAST, "full fill zeros ones expand tile repeat"},
    {IR_OP_TRANSPOSE, "permute swapaxes"},
    {IR_OP_RESHAPE, "view squeeze unsqueeze flatten"},
    {IR_OP_GATHER, "take embedding"},
    {IR_OP_CONDITIONAL, "if cond case switch"},
    {IR_OP_WHILE, "loop for"},
    {IR_OP_ALL_REDUCE, "psum allreduce"},
    {IR_OP_ALL_GATHER, "allgather"},
    {IR_OP_ALL_TO_ALL, "alltoall"},
    {IR_OP_COLLECTIVE_PERMUTE, "ppermute"},
    {IR_OP_PARAMETER, "input param arg argument"},
    {IR_OP_CONSTANT, "const"},
    {IR_OP_COPY, "identity clone"},
    {IR_OP_ROUND_NEAREST_EVEN, "round"},
};

/* Whether one of the words in `names`, which spaces part, is the n bytes at p. */
static bool has_word(const char *names, const char *p, size_t n) {
  assert(n > 0);
  for (const char *w = names; *w; w += *w == ' ') {
    size_t m = strcspn(w, " ");
    if (m == n && memcmp(w, p, n) == 0) return true;
    w += m;
  }
  return false;
}

ir_opcode text_opcode_elsewhere(const char *p, size_t n) {
  assert(p || n == 0);
  for (size_t i = 0; n && i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (has_word(elsewhere[i].names, p, n)) return elsewhere[i].op;
  return IR_OP_INVALID;
}

ir_opcode text_nearest_name(const char *p, size_t n, bool begins, const char *(*name_of)(ir_opcode op)) {
  ir_opcode best = IR_OP_INVALID;
  unsigned least = 3;
  for (unsigned op = 1; op < IR_OP_COUNT; op++) {
    const char *known = name_of((ir_opcode)op);
    if (!known) continue;
    if (begins && strncmp(known, p, n) == 0) return (ir_opcode)op;
    unsigned d = text_edit_distance(p, n, known, 2);
    if (d < least) {
      least = d;
      best = (ir_opcode)op;
    }
  }
  return best;
}

static const char *opcode_text(ir_opcode op) {
  return ir_opcode_text(op);
}

ir_opcode text_nearest_opcode(const char *p, size_t n) {
  ir_opcode best = text_opcode_elsewhere(p, n);
  return best ? best : text_nearest_name(p, n, n > 2, opcode_text);
}

/* By rows of the table of distances between beginnings of the two words, of which one is kept. */
unsigned text_edit_distance(const char *a, size_t n, const char *b, unsigned most) {
  unsigned row[64], m = (unsigned)strlen(b);
  if (n >= 48 || m >= 48 || (n > m ? n - m : m - n) > most) return most + 1;
  for (unsigned j = 0; j <= m; j++) row[j] = j;
  for (unsigned i = 1; i <= n; i++) {
    unsigned diagonal = row[0];
    row[0] = i;
    for (unsigned j = 1; j <= m; j++) {
      unsigned change = diagonal + (a[i - 1] != b[j - 1]), least = change;
      if (row[j] + 1 < least) least = row[j] + 1;
      if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = least;
    }
  }
  return row[m];
}
