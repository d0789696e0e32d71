/* TensorFlow graphs as StableHLO. */
#include "../tf/lower/whole.h"
#include "api.h"

static int lower_check_input(const xlac_graph_input *in, tfl_named *out, xlac_error *err) {
  *out = (tfl_named){.tensor = in->tensor, .input = {.data = in->data, .resource = in->variable, .unset = in->unset}};
  if (in->unset) return 0;
  if (in->rank > TFL_MOST_DIMS)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "'%.200s' has %u dimensions, at most %d work", in->tensor, in->rank,
                     TFL_MOST_DIMS);
  size_t bytes = 0;
  TRY(api_array_bytes(in->dtype, in->rank, in->dims, &bytes, err));
  out->input.shape = (tfl_shape){.dtype = (base_dtype)in->dtype, .rank = in->rank};
  if (in->rank) memcpy(out->input.shape.dims, in->dims, in->rank * sizeof *in->dims);
  return 0;
}

static int lower_graph_in(xlac_module **out, base_text *report, tf_graph_def *def, uint32_t n_inputs,
                          const xlac_graph_input *inputs, uint32_t n_fetches, const char *const *fetches,
                          xlac_error *err) {
  tf_graph graph;
  ir_module *ir = NULL;
  tfl_named *named = BASE_ARRAY(&def->arena, tfl_named, (size_t)n_inputs + 1);
  if (!named) return base_oom(err, "lowering");
  for (uint32_t i = 0; i < n_inputs; i++) TRY(lower_check_input(&inputs[i], &named[i], err));
  TRY(tf_graph_import(&graph, def, NULL, err));
  int status = tfl_lower_whole(&ir, report, &graph, n_inputs, named, n_fetches, fetches, err);
  tf_graph_free(&graph);
  return status ? status : api_wrap(out, ir, err);
}

int xlac_graph_lower(xlac_module **out, const void *bytes, size_t n, xlac_graph_format format, uint32_t n_inputs,
                     const xlac_graph_input *inputs, uint32_t n_fetches, const char *const *fetches, char **report,
                     size_t *n_report, xlac_error *err) {
  tf_graph_def *def = NULL;
  base_text t;
  if ((unsigned)format > XLAC_GRAPH_TEXT)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "%d is no format of graphs", (int)format);
  for (uint32_t i = 0; i < n_inputs; i++) TRY(api_check_text(inputs[i].tensor, "an input's tensor", err));
  TRY(api_check_texts(n_fetches, fetches, "fetch", err));
  bool text = format == XLAC_GRAPH_TEXT || (format == XLAC_GRAPH_AUTO && tf_graph_def_is_text(bytes, n));
  TRY(tf_graph_def_read(&def, base_alloc_libc, bytes, n, text, err));
  base_text_init(&t, base_alloc_libc);
  int status = lower_graph_in(out, &t, def, n_inputs, inputs, n_fetches, fetches, err);
  tf_graph_def_free(def);
  if (status == 0) return api_give_text(&t, report, n_report, err);
  base_text_free(&t);
  return status;
}

bool xlac_graph_has_lowering(const char *op) {
  return op && tfl_has_op(op);
}
