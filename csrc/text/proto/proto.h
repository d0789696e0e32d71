/* HloModuleProto, XLA's binary form of a module (xla/service/hlo.proto and xla/xla_data.proto as of jaxlib 0.10.2).
 * The face of text/proto/ to the other rooms.
 *
 * What the protocol does not hold is lost in it: replica and partition counts, the flags that allow sharding to
 * propagate, and alias_passthrough_params. docs/formats.md has the list. Nothing is kept between calls; several
 * threads may read and write at once. Functions return 0, or a negative code with *err filled. */
#ifndef XLAC_TEXT_PROTO_PROTO_H
#define XLAC_TEXT_PROTO_PROTO_H

#include "../text.h"

/* Reads a whole module from n bytes of any kind. Not verified. Errors name the byte at which reading stopped. *out
 * is the caller's, to be destroyed by ir_module_destroy, and does not refer to the bytes. Names that HLO text can't
 * spell are changed as XLA changes them. */
XLAC_MUST_USE int text_parse_proto(ir_module **out, const void *data, size_t n, const text_parse_options *options,
                                   xlac_error *err);
/* Appends the module's bytes. Fails when out of memory, beyond 2 GiB, and for what only newer XLA has. */
XLAC_MUST_USE int text_print_proto(base_text *out, const ir_module *m, xlac_error *err);
/* Whether the bytes begin like a serialized module rather than like text. A guess by the first bytes; parsing says
 * for certain. */
bool text_is_proto(const void *data, size_t n);

#endif
