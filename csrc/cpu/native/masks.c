/* Truth values: lanes of ones or zeros, or bits in registers of their own, as the target has them. */
#include "body.h"

uint32_t nat_mask_constant(nat_body *b, bool on) {
  return nat_constant(b, b->target->masks ? 0 : 1, on ? UINT64_MAX : 0);
}

uint32_t nat_mask(nat_body *b, uint32_t mask, uint32_t width) {
  if (b->failed || b->target->masks) return mask;
  if (b->values[mask].kind == NAT_CONSTANT) return nat_constant(b, width, b->values[mask].bits ? UINT64_MAX : 0);
  return b->values[mask].width < width ? nat_widen_mask(b, mask, width) : nat_narrow_mask(b, mask, width);
}

/* Lanes become as wide as the wider operand's. */
uint32_t nat_mask_op(nat_body *b, nat_lane op, uint32_t x, uint32_t y) {
  if (b->failed) return 0;
  if (b->target->masks) {
    nat_lane bits = op == NAT_AND   ? NAT_MASK_AND
                    : op == NAT_OR  ? NAT_MASK_OR
                    : op == NAT_XOR ? NAT_MASK_XOR
                                    : NAT_MASK_ANDN;
    return nat_op2(b, bits, 1, x, y);
  }
  uint32_t w = b->values[x].width > b->values[y].width ? b->values[x].width : b->values[y].width;
  return nat_op2(b, op, w, nat_mask(b, x, w), nat_mask(b, y, w));
}

uint32_t nat_mask_not(nat_body *b, uint32_t x) {
  if (b->failed) return 0;
  if (b->target->masks) return nat_op1(b, NAT_MASK_NOT, 1, x);
  uint32_t w = b->values[x].width;
  return nat_op2(b, NAT_XOR, w, x, nat_constant(b, w, UINT64_MAX));
}

static uint32_t nat_select_masks(nat_body *b, uint32_t mask, uint32_t yes, uint32_t no) {
  return nat_mask_op(b, NAT_OR, nat_mask_op(b, NAT_AND, mask, yes), nat_mask_op(b, NAT_ANDN, mask, no));
}

uint32_t nat_select(nat_body *b, uint32_t mask, uint32_t yes, uint32_t no) {
  if (b->failed) return 0;
  const nat_value *y = &b->values[yes], *n = &b->values[no];
  if (y->kind == NAT_PAIR) {
    uint32_t im[] = {y->in[1], n->in[1]}, re = nat_select(b, mask, y->in[0], n->in[0]);
    return nat_pair(b, re, nat_select(b, mask, im[0], im[1]));
  }
  uint32_t width = y->width;
  assert(b->values[no].width == width);
  if (width == 0) return nat_select_masks(b, mask, yes, no);
  return nat_op(b, NAT_BLEND, width, no, yes, nat_mask(b, mask, width), 0);
}

uint32_t nat_keep(nat_body *b, uint32_t mask, uint32_t x) {
  if (b->failed) return 0;
  uint32_t width = b->values[x].width;
  return nat_op2(b, b->target->masks ? NAT_KEEP : NAT_AND, width, x, nat_mask(b, mask, width));
}

uint32_t nat_mask_of_bytes(nat_body *b, uint32_t x) {
  if (b->target->masks) return nat_op2(b, NAT_TEST, 1, x, x);
  return nat_op2(b, NAT_ISUB, 1, nat_constant(b, 1, 0), x);
}

uint32_t nat_bytes_of_mask(nat_body *b, uint32_t mask) {
  if (b->target->masks) return nat_keep(b, mask, nat_constant(b, 1, 1));
  return nat_op1(b, NAT_IABS, 1, nat_mask(b, mask, 1));
}

/* Unsigned numbers as signed ones in the same order. */
static uint32_t nat_signed_order(nat_body *b, uint32_t w, bool is_signed, uint32_t x) {
  return is_signed ? x : nat_op2(b, NAT_XOR, w, x, nat_constant(b, w, (uint64_t)1 << (8 * w - 1)));
}

uint32_t nat_compare_ints(nat_body *b, uint32_t w, bool is_signed, scalar_direction direction, uint32_t x, uint32_t y) {
  static const uint8_t numbers[SCALAR_DIRECTIONS] = {
      [SCALAR_EQ] = 0, [SCALAR_NE] = 4, [SCALAR_GE] = 5, [SCALAR_GT] = 6, [SCALAR_LE] = 2, [SCALAR_LT] = 1};
  if (nat_has(b, NAT_SCMP, w)) return nat_op(b, is_signed ? NAT_SCMP : NAT_UCMP, w, x, y, NAT_NONE, numbers[direction]);
  bool negated = direction == SCALAR_NE || direction == SCALAR_GE || direction == SCALAR_LE;
  bool equal = direction == SCALAR_EQ || direction == SCALAR_NE;
  bool swapped = direction == SCALAR_LT || direction == SCALAR_GE;
  if (!equal) x = nat_signed_order(b, w, is_signed, x), y = nat_signed_order(b, w, is_signed, y);
  uint32_t r = nat_op2(b, equal ? NAT_IEQ : NAT_SGT, w, swapped ? y : x, swapped ? x : y);
  return negated ? nat_mask_not(b, r) : r;
}
