/* No include guard: the links of chains for one type and instruction set. The includer defines T and U (an unsigned
 * integer of its size), CHAIN(name), a function's name, and CHAIN_BYTES, of a vector. A link computes eight vectors (or
 * one, where fewer lanes are left), which stay in the registers that arguments are passed in, and jumps to the next
 * one. */
typedef T CHAIN(vec) __attribute__((vector_size(CHAIN_BYTES)));
typedef U CHAIN(bits) __attribute__((vector_size(CHAIN_BYTES)));
typedef T CHAIN(far) __attribute__((vector_size(CHAIN_BYTES), aligned(sizeof(T)), may_alias));
enum { CHAIN(lanes) = CHAIN_BYTES / sizeof(T) };
#define CHAIN_ALL \
  CHAIN(vec) a0, CHAIN(vec) a1, CHAIN(vec) a2, CHAIN(vec) a3, CHAIN(vec) a4, CHAIN(vec) a5, CHAIN(vec) a6, CHAIN(vec) a7
typedef void CHAIN(wide)(const vm_step *s, int64_t at, CHAIN_ALL);
typedef void CHAIN(narrow)(const vm_step *s, int64_t at, CHAIN(vec) a0);

/* y where the mask is set, else x. */
__attribute__((always_inline)) static inline CHAIN(vec) CHAIN(pick)(CHAIN(bits) mask, CHAIN(vec) y, CHAIN(vec) x) {
  return (CHAIN(vec))(((CHAIN(bits))y & mask) | ((CHAIN(bits))x & ~mask));
}

/* Link code: of vector number k, y is what Y gives for it, and the expression of x and y its next value. */
#define CHAIN_DO(k, Y, expr)                                \
  {                                                         \
    CHAIN(vec) x = a##k, y = Y((const T *)s->from + at, k); \
    (void)x;                                                \
    a##k = expr;                                            \
  }
#define CHAIN_LANES(p, k) *(const CHAIN(far) *)((p) + k * CHAIN(lanes))
#define CHAIN_SAME(p, k) same
/* Two functions a link: for eight vectors and for one. Each ends with a jump to the next link's code, a tail call
 * whose arguments stay in their registers. */
#define CHAIN_LINK(name, SAME, Y, expr)                                                                           \
  static void CHAIN(name)(const vm_step *s, int64_t at, CHAIN_ALL) {                                              \
    SAME CHAIN_DO(0, Y, expr) CHAIN_DO(1, Y, expr) CHAIN_DO(2, Y, expr) CHAIN_DO(3, Y, expr) CHAIN_DO(4, Y, expr) \
        CHAIN_DO(5, Y, expr) CHAIN_DO(6, Y, expr)                                                                 \
            CHAIN_DO(7, Y, expr)((CHAIN(wide) *)s[1].code)(s + 1, at, a0, a1, a2, a3, a4, a5, a6, a7);            \
  }                                                                                                               \
  static void CHAIN(one_##name)(const vm_step *s, int64_t at, CHAIN(vec) a0) {                                    \
    SAME CHAIN_DO(0, Y, expr)((CHAIN(narrow) *)s[1].code)(s + 1, at, a0);                                         \
  }
/* The number in all lanes; subtracting zeros of the vector type is how GCC and clang both spell a broadcast. */
#define CHAIN_BY_NUMBER CHAIN(vec) same = *(const T *)s->from - (CHAIN(vec)){0};
#define CHAIN_BOTH(name, code, side, expr)  \
  CHAIN_LINK(name##_v, , CHAIN_LANES, expr) \
  CHAIN_LINK(name##_n, CHAIN_BY_NUMBER, CHAIN_SAME, expr)
#define CHAIN_CHOICE(name, when) CHAIN_LINK(name, CHAIN_BY_NUMBER, CHAIN_SAME, CHAIN(pick)((CHAIN(bits))(when), y, x))
SCALAR_LINKS(CHAIN_BOTH)
VM_LINK_CHOICES(CHAIN_CHOICE)

/* The last link: stores, and returns to the loop over the block. */
static void CHAIN(end)(const vm_step *s, int64_t at, CHAIN_ALL) {
  T *to = (T *)(uintptr_t)s->from + at;
  *(CHAIN(far) *)to = a0;
  *(CHAIN(far) *)(to + CHAIN(lanes)) = a1;
  *(CHAIN(far) *)(to + 2 * CHAIN(lanes)) = a2;
  *(CHAIN(far) *)(to + 3 * CHAIN(lanes)) = a3;
  *(CHAIN(far) *)(to + 4 * CHAIN(lanes)) = a4;
  *(CHAIN(far) *)(to + 5 * CHAIN(lanes)) = a5;
  *(CHAIN(far) *)(to + 6 * CHAIN(lanes)) = a6;
  *(CHAIN(far) *)(to + 7 * CHAIN(lanes)) = a7;
}
static void CHAIN(one_end)(const vm_step *s, int64_t at, CHAIN(vec) a0) {
  *(CHAIN(far) *)((T *)(uintptr_t)s->from + at) = a0;
}

static vm_step_fn *const CHAIN(links)[VM_LINKS][2] = {
#define CHAIN_ENTRY(name, when) {(vm_step_fn *)CHAIN(name), (vm_step_fn *)CHAIN(one_##name)},
#define CHAIN_ENTRIES(name, code, side, expr) CHAIN_ENTRY(name##_v, ) CHAIN_ENTRY(name##_n, )
    SCALAR_LINKS(CHAIN_ENTRIES) VM_LINK_CHOICES(CHAIN_ENTRY) CHAIN_ENTRY(end, )};

/* Lanes that fill no vector are worked on in copies of one vector each, so that nothing is read or written beyond
 * the end. */
static void CHAIN(rest)(int64_t at, int64_t n, const T *x, uint32_t n_steps, const vm_step *given) {
  assert(n > 0 && n < CHAIN(lanes) && n_steps > 1);
  vm_step steps[VM_MAX_CHAIN + 1];
  T room[VM_MAX_CHAIN + 1][CHAIN(lanes)] __attribute__((aligned(64)));
  T *to = (T *)(uintptr_t)given[n_steps - 1].from;
  memset(room, 0, n_steps * sizeof *room);
  for (uint32_t i = 0; i + 1 < n_steps; i++) {
    bool number = given[i].number;
    memcpy(room[i], (const T *)given[i].from + (number ? 0 : at), (size_t)(number ? 1 : n) * sizeof(T));
    steps[i] = (vm_step){CHAIN(links)[given[i].link][1], (const char *)room[i], given[i].link, number};
  }
  steps[n_steps - 1] = (vm_step){CHAIN(links)[VM_LINK_END][1], (const char *)room[n_steps - 1], VM_LINK_END, false};
  CHAIN(vec) a = {0};
  memcpy(&a, x + at, (size_t)n * sizeof(T));
  ((CHAIN(narrow) *)steps[0].code)(steps, 0, a);
  memcpy(to + at, room[n_steps - 1], (size_t)n * sizeof(T));
}

/* Eight vectors at a time, then one, then what is left in a copy. */
void CHAIN(run)(int64_t n, const void *from, uint32_t n_steps, vm_step *steps) {
  const T *x = from;
  int64_t at = 0;
  assert(n_steps <= VM_MAX_CHAIN + 1);
  for (uint32_t i = 0; i < n_steps; i++) steps[i].code = CHAIN(links)[steps[i].link][0];
  for (; at + 8 * CHAIN(lanes) <= n; at += 8 * CHAIN(lanes)) {
#define CHAIN_LOAD(k) *(const CHAIN(far) *)(x + at + k * CHAIN(lanes))
    ((CHAIN(wide) *)steps[0].code)(steps, at, CHAIN_LOAD(0), CHAIN_LOAD(1), CHAIN_LOAD(2), CHAIN_LOAD(3), CHAIN_LOAD(4),
                                   CHAIN_LOAD(5), CHAIN_LOAD(6), CHAIN_LOAD(7));
  }
  if (at == n) return;
  for (uint32_t i = 0; i < n_steps; i++) steps[i].code = CHAIN(links)[steps[i].link][1];
  for (; at + CHAIN(lanes) <= n; at += CHAIN(lanes)) ((CHAIN(narrow) *)steps[0].code)(steps, at, CHAIN_LOAD(0));
  if (at < n) CHAIN(rest)(at, n - at, x, n_steps, steps);
}

#undef CHAIN_ALL
#undef CHAIN_DO
#undef CHAIN_LANES
#undef CHAIN_SAME
#undef CHAIN_LINK
#undef CHAIN_BY_NUMBER
#undef CHAIN_BOTH
#undef CHAIN_CHOICE
#undef CHAIN_ENTRY
#undef CHAIN_ENTRIES
#undef CHAIN_LOAD
#undef CHAIN_BYTES
#undef CHAIN
#undef T
#undef U
