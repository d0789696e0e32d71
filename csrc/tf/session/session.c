/* A session: what the steps of a clustered graph share. Variables live as long as it, as do programs of functions;
 * programs of graphs belong to steps. */
#include "session.h"

#include "../../driver/devices.h"

/* With the caller's devices, or a set of its own. `call` begins at 1, since 0 means "in no call yet" of a variable. */
int tfs_session_create(tfs_session **out, tf_pass *pass, const tfs_options *options, xlac_error *err) {
  assert(pass && options);
  base_alloc alloc = pass->graph.alloc;
  tfs_session *s = base_malloc(alloc, sizeof *s);
  if (!s) return base_oom(err, "making a session");
  *s = (tfs_session){.pass = pass, .alloc = alloc, .options = *options, .call = 1};
  base_map_init(&s->variable_of, alloc);
  base_map_init(&s->body_of, alloc);
  if (options->devices)
    s->devices = rt_device_set_retain(options->devices);
  else if (rt_device_set_create(&s->devices, driver_device_kinds, alloc, err) != 0) {
    tfs_session_free(s);
    return -XLAC_E_OUT_OF_MEMORY;
  }
  *out = s;
  return 0;
}

/* Programs go before variables: they hold handles of them. */
void tfs_session_free(tfs_session *s) {
  if (!s) return;
  assert(s->saved.n == 0);
  for (tfs_program *p = s->bodies, *next = NULL; p; p = next) {
    next = p->next;
    tfs_program_free(p);
    base_free(s->alloc, p);
  }
  for (uint32_t i = 0; i < s->variables.n; i++) tfs_object_drop(s->variables.items[i]);
  BASE_VEC_FREE(s->alloc, &s->variables);
  BASE_VEC_FREE(s->alloc, &s->saved);
  base_map_free(&s->variable_of);
  base_map_free(&s->body_of);
  rt_device_set_release(s->devices);
  base_free(s->alloc, s);
}
