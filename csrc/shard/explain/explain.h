/* Propagation that says what it does, and what it leaves to move: as JSON, for people's tools. */
#ifndef XLAC_SHARD_EXPLAIN_EXPLAIN_H
#define XLAC_SHARD_EXPLAIN_EXPLAIN_H

#include "../../ir/ir.h"

/* Propagates by user priorities, keeping the rules, and appends
 * {"results": [sharding of the main function's],
 *  "values": [{"name", "opcode", "line", "col", "index", "results", "source", "function", "main", "depth", "inside",
 *              "type", "itemsize", "shape", "operands", "slot", "home", "sharding"}],
 *  "steps": [{"to", "dim", "axis", "from", "op", "opcode", "line", "factor", "step", "level", "priority", "strategy"}],
 *  "origins": [{"value", "axis", "origin"}],
 *  "conflicts": [{"op", "opcode", "line", "factor", "axis", "against", "value", "reason", "level", "priority"}]}
 * `to`, `from` and `value` are places in "values", in the order of the text; names are those of the module as it
 * is printed now, which functions and regions side by side use again. What a value's sharding came to is told of the
 * value in slot `home`. "inside": the number of the
 * named computation around it, which is what becomes of a call, or 0. */
XLAC_MUST_USE int shard_explain(ir_module *m, base_text *out, xlac_error *err);
/* {"values": as above, "reshards": [{"value", "name", "opcode", "line", "col", "of", "source", "from", "to",
 * "bytes"}]}: every op that moves or adds up data between devices; bytes are those a device sends, at least. */
XLAC_MUST_USE int shard_list_reshards(ir_module *m, base_text *out, xlac_error *err);
/* Whether an op of sdy moves or adds up data between devices, and the bytes that a device sends for it, at least. */
bool shard_moves_data(const ir_op *op);
int64_t shard_moved_bytes(const ir_module *m, const ir_op *op);
/* The file and line that an op comes from, as a JSON string; null where its location names none. */
void shard_put_source(base_text *o, const ir_mattr *loc);
/* Writes a sharding ("#sdy.sharding<...>"; "": none) down on the value of that name, as the module's text has it
 * ("@f/%3" in a function but main): on an argument, in a constraint (which all readers of another value get then), or
 * ("result 0") on a result of the main function. "@mesh" is a mesh, which gets the axes of "#sdy.mesh<...>", or is new.
 * The module is verified then. */
XLAC_MUST_USE int shard_annotate(ir_module *m, const char *value, const char *sharding, xlac_error *err);

#endif
