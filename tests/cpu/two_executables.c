/* Two executables of one plan: other threads, numerics, devices. The plan is made here, by no executable, and stays as
 * it is; what it needs of routines is prepared for each. Says "equal", or what is not. Compiled with the whole core. */
#include "xlac_all.c"

static const char text[] =
    "HloModule m\n"
    "less { a = f32[] parameter(0)\n"
    "  b = f32[] parameter(1)\n"
    "  ROOT c = pred[] compare(a, b), direction=LT }\n"
    "small { i = (s32[], f32[16,16]) parameter(0)\n"
    "  n = s32[] get-tuple-element(i), index=0\n"
    "  k = s32[] constant(3)\n"
    "  ROOT c = pred[] compare(n, k), direction=LT }\n"
    "next { i = (s32[], f32[16,16]) parameter(0)\n"
    "  n = s32[] get-tuple-element(i), index=0\n"
    "  x = f32[16,16] get-tuple-element(i), index=1\n"
    "  one = s32[] constant(1)\n"
    "  m = s32[] add(n, one)\n"
    "  y = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  ROOT t = (s32[], f32[16,16]) tuple(m, y) }\n"
    "ENTRY e { x = f32[16,16] parameter(0)\n"
    "  c = f32[16] constant({1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16})\n"
    "  b = f32[16,16] broadcast(c), dimensions={1}\n"
    "  y = f32[16,16] multiply(x, b)\n"
    "  s = f32[16,16] sort(y), dimensions={1}, to_apply=less\n"
    "  zero = s32[] constant(0)\n"
    "  i = (s32[], f32[16,16]) tuple(zero, s)\n"
    "  w = (s32[], f32[16,16]) while(i), condition=small, body=next\n"
    "  r = f32[16,16] get-tuple-element(w), index=1\n"
    "  ROOT t = (f32[16,16], f32[16,16]) tuple(r, s) }\n";

enum { N = 16 * 16 };

static int run(const rt_executable *exe, float *product, float *sorted, xlac_error *err) {
  static float x[N];
  for (int i = 0; i < N; i++) x[i] = (float)((i * 7) % 5 - 2) / 16;
  void *arguments[] = {x}, *results[] = {product, sorted};
  const rt_call_options options = {.seed = 1};
  return rt_call(exe, &options, arguments, results, err);
}

static bool nearly(const float *a, const float *b) {
  for (int i = 0; i < N; i++)
    if (!(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(a[i])))) return false;
  return true;
}

/* In a context of the CPU's of its own. */
static int finish(uint32_t ordinal, const ir_module *m, const plan_program *plan, const rt_build_options *options,
                  rt_executable **out, xlac_error *err) {
  rt_device *d = NULL;
  rt_build *b = NULL;
  TRY(cpu_device_create(&d, ordinal, base_alloc_libc, err));
  int status = rt_build_begin(d, options, &b, err);
  if (status == 0) status = rt_build_finish_shared(b, m, plan, out, err);
  rt_device_release(d);
  return status;
}

static bool share(const rt_executable *x, const rt_executable *y) {
  const cpu_executable *a = (const cpu_executable *)x, *b = (const cpu_executable *)y;
  return a->codes == b->codes || a->routines.items == b->routines.items || a->host == b->host || a->pool == b->pool ||
         x->device == y->device;
}

static const char *both(const ir_module *m, const plan_program *plan, xlac_error *err) {
  const rt_build_options one = {.threads = 1, .no_blas = true}, two = {.threads = 3, .no_blas = true, .fast = true};
  static float product[3][N], sorted[3][N];
  rt_executable *a = NULL, *b = NULL;
  if (finish(0, m, plan, &one, &a, err) || finish(1, m, plan, &two, &b, err)) return err->message;
  if (share(a, b)) return "shared";
  if (run(a, product[0], sorted[0], err) || run(b, product[1], sorted[1], err)) return err->message;
  rt_executable_destroy(b); /* the other goes on */
  if (run(a, product[2], sorted[2], err)) return err->message;
  rt_executable_destroy(a);
  if (memcmp(product[0], product[2], sizeof product[0]))
    return "the first gives something else after the second is gone";
  if (memcmp(sorted[0], sorted[1], sizeof sorted[0]) || !nearly(product[0], product[1])) return "they differ";
  return product[0][0] == 0 && product[0][N - 1] == 0 ? "nothing was computed" : NULL;
}

/* Nothing of a plan changes when executables are made of it. */
static bool is_as_before(const plan_program *p, const char *before) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  plan_put(&t, p);
  bool same = strcmp(base_text_cstr(&t), before) == 0;
  base_text_free(&t);
  return same;
}

int main(void) {
  xlac_error err = {.code = 0};
  xlac_module *read = NULL;
  ir_module *m = NULL;
  plan_program *plan = NULL;
  base_arena arena;
  base_text before;
  base_arena_init(&arena, base_alloc_libc);
  base_text_init(&before, base_alloc_libc);
  cpu_prepare_options prepare = {.arena = &arena, .alloc = base_alloc_libc};
  const plan_target target = {.device = cpu_plan_device, .prepare = cpu_prepare, .ctx = &prepare};
  const plan_options options = {.target = &target};
  if (xlac_module_parse(&read, text, strlen(text), NULL, &err) || driver_translate(read->ir, &m, &err) ||
      plan_make(m, &options, &arena, &plan, &err))
    return printf("no plan: %s\n", err.message), 1;
  plan_put(&before, plan);
  const char *wrong = both(m, plan, &err);
  if (!wrong && !is_as_before(plan, base_text_cstr(&before))) wrong = "the plan is another one";
  if (!wrong && plan_check(plan, base_alloc_libc, &err)) wrong = err.message;
  rt_executable *other = NULL;
  plan->device.buffer_bytes = 0;
  if (!wrong && finish(2, m, plan, &(rt_build_options){.threads = 1}, &other, &err) != -XLAC_E_BAD_ARGUMENT)
    wrong = "the plan of another device was taken";
  BASE_VEC_FREE(prepare.alloc, &prepare.routines);
  base_text_free(&before);
  base_arena_free(&arena);
  ir_module_destroy(m);
  xlac_module_destroy(read);
  printf("%s\n", wrong ? wrong : "equal");
  return wrong != NULL;
}
