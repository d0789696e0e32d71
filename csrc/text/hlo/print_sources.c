/* Prints the source tables: FileNames, FunctionNames, FileLocations, StackFrames. Rows that no op uses go, equal rows
 * become one, and the rest are numbered in the order the ops first use them, as when XLA reads the text. */
#include "print.h"

/* Tables are printed with those rows alone that the printed ops refer to, in the order of first use. */
typedef struct new_location {
  uint32_t row; /* of the module's table, from 0 */
  uint32_t file, function;
  uint32_t next; /* with the same hash, from 1 */
} new_location;

typedef struct new_frame {
  uint32_t location, parent; /* new rows, from 1; parent 0: none */
} new_frame;

/* The new tables, and maps from what a row says to its new number. */
typedef struct text_sources {
  const ir_source_tables *from;
  const base_istr **files, **functions; /* new rows in order */
  new_location *locations;
  new_frame *frames;
  uint32_t n_files, n_functions, n_locations, n_frames;
  base_map file_rows, function_rows, location_heads, frame_rows;
  uint32_t *stack; /* frames to number, innermost first */
  bool failed;     /* out of memory while numbering */
} text_sources;

/* Ids in the text are rows from 1; anything else reads as an empty name. `id` counts from 1; 0 is not a row. */
static const base_istr *name_at(const base_istr **names, uint32_t n, uint32_t id) {
  return id >= 1 && id <= n ? names[id - 1] : NULL;
}

/* Gives the key the next row of a table, whose entry the caller has filled; 0, and no row, when out of memory. */
static uint32_t add_row(text_sources *s, base_map *rows, uint64_t key, uint32_t *n) {
  if (!base_map_set(rows, key, (uint64_t)*n + 1)) {
    s->failed = true;
    return 0;
  }
  return ++*n;
}

/* The row of a name in the new table, from 1; names are interned, so that their addresses are the keys. */
static uint32_t number_name(text_sources *s, base_map *rows, const base_istr **names, uint32_t *n,
                            const base_istr *name) {
  uint64_t row;
  if (base_map_get(rows, base_key(name), &row)) return (uint32_t)row;
  names[*n] = name;
  return add_row(s, rows, base_key(name), n);
}

/* 64 bits out of two 32-bit hashes; locations that share them are chained by `next`. */
static uint64_t location_hash(const ir_location *l, uint32_t file, uint32_t function) {
  const int64_t parts[] = {file, function, l->line, l->end_line, l->column, l->end_column};
  uint64_t low = base_hash((const char *)parts, sizeof parts);
  return low << 32 | base_hash((const char *)parts, sizeof parts / 2);
}

/* Rows of one file that say the same place become one. */
static bool is_same_place(const ir_location *a, const ir_location *b) {
  return a->line == b->line && a->end_line == b->end_line && a->column == b->column && a->end_column == b->end_column;
}

/* `row` counts from 1; 0 when there is no such row. */
static uint32_t number_location(text_sources *s, uint32_t row) {
  if (row < 1 || row > s->from->n_locations) return 0;
  const ir_location *l = &s->from->locations[row - 1];
  const base_istr *file_name = name_at(s->from->files, s->from->n_files, l->file);
  const base_istr *function_name = name_at(s->from->functions, s->from->n_functions, l->function);
  uint32_t file = file_name ? number_name(s, &s->file_rows, s->files, &s->n_files, file_name) : 0;
  uint32_t function =
      function_name ? number_name(s, &s->function_rows, s->functions, &s->n_functions, function_name) : 0;
  uint64_t hash = location_hash(l, file, function), head = 0;
  (void)base_map_get(&s->location_heads, hash, &head);
  for (uint32_t at = (uint32_t)head; at; at = s->locations[at - 1].next) {
    const new_location *known = &s->locations[at - 1];
    if (known->file == file && known->function == function && is_same_place(&s->from->locations[known->row], l))
      return at;
  }
  s->locations[s->n_locations] = (new_location){row - 1, file, function, (uint32_t)head};
  return add_row(s, &s->location_heads, hash, &s->n_locations);
}

/* The frame's location and parent are new rows; equal frames become one. */
static uint32_t number_frame(text_sources *s, uint32_t location_row, uint32_t parent) {
  assert(parent <= s->n_frames);
  uint32_t location = number_location(s, location_row);
  uint64_t key = (uint64_t)location << 32 | parent, row;
  if (base_map_get(&s->frame_rows, key, &row)) return (uint32_t)row;
  s->frames[s->n_frames] = (new_frame){location, parent};
  return add_row(s, &s->frame_rows, key, &s->n_frames);
}

/* Row of the caller of frame `row` (both from 1), or 0. */
static uint32_t parent_row(const ir_source_tables *t, uint32_t row) {
  uint32_t parent = t->frames[row - 1].parent;
  return parent >= 1 && parent <= t->n_frames && parent != row ? parent : 0;
}

/* Callers get their numbers first. A cycle of parents, which no compiler writes, is cut where it closes. Goes up to
 * the first frame that has a number, then numbers on the way back, without recursion. */
static void number_stack(text_printer *p, uint32_t row) {
  text_sources *s = p->sources;
  assert(s && p->frames && row >= 1 && row <= s->from->n_frames);
  uint32_t n = 0, number = 0;
  for (; row && n < s->from->n_frames && p->frames[row - 1] == 0; row = parent_row(s->from, row)) s->stack[n++] = row;
  if (row) number = p->frames[row - 1];
  while (n) {
    row = s->stack[--n];
    if (p->frames[row - 1] == 0) p->frames[row - 1] = number_frame(s, s->from->frames[row - 1].location, number);
    number = p->frames[row - 1];
  }
}

/* Room for as many rows as the module has: no table grows. */
static bool alloc_sources(text_printer *p) {
  const ir_source_tables *from = &p->module->sources;
  text_sources *s = BASE_NEW(&p->arena, text_sources);
  if (!s) return false;
  s->from = from;
  s->files = BASE_ARRAY(&p->arena, const base_istr *, (size_t)from->n_files + 1);
  s->functions = BASE_ARRAY(&p->arena, const base_istr *, (size_t)from->n_functions + 1);
  s->locations = BASE_ARRAY(&p->arena, new_location, (size_t)from->n_locations + 1);
  s->frames = BASE_ARRAY(&p->arena, new_frame, (size_t)from->n_frames + 1);
  s->stack = BASE_ARRAY(&p->arena, uint32_t, (size_t)from->n_frames + 1);
  p->frames = BASE_ARRAY(&p->arena, uint32_t, from->n_frames);
  if (!s->files || !s->functions || !s->locations || !s->frames || !s->stack || !p->frames) return false;
  memset(p->frames, 0, from->n_frames * sizeof *p->frames);
  base_map *maps[] = {&s->file_rows, &s->function_rows, &s->location_heads, &s->frame_rows};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) base_map_init(maps[i], p->out->alloc);
  p->sources = s;
  return true;
}

/* In the order of the module's list of computations and of their ops, as XLA numbers them when it reads the text. */
void text_number_sources(text_printer *p) {
  uint32_t n_frames = p->module->sources.n_frames;
  if (n_frames == 0 || !p->metadata) return;
  if (!alloc_sources(p)) {
    p->out->failed = true;
    return;
  }
  IR_FOR_COMPUTATIONS(c, p->module) {
    IR_FOR_OPS(op, c) {
      const ir_metadata *m = op->n_attrs ? ir_get_metadata(op) : NULL;
      if (m && m->stack_frame_id && m->stack_frame_id <= n_frames && p->frames[m->stack_frame_id - 1] == 0)
        number_stack(p, m->stack_frame_id);
    }
  }
  if (p->sources->failed) p->out->failed = true;
  base_map_free(&p->sources->file_rows);
  base_map_free(&p->sources->function_rows);
  base_map_free(&p->sources->location_heads);
  base_map_free(&p->sources->frame_rows);
}

/*   1 "f.py" */
static void write_names(base_text *out, const char *title, const base_istr **names, uint32_t n) {
  base_puts(out, title);
  for (uint32_t i = 0; i < n; i++) {
    base_put_u64(out, i + 1);
    base_putc(out, ' ');
    text_put_quoted(out, names[i]);
    base_putc(out, '\n');
  }
}

/* The name comes with its blank or brace. */
static void write_source_field(base_text *out, const char *name, int64_t v) {
  base_puts(out, name);
  base_put_i64(out, v);
}

/*   1 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=4 end_column=9} */
static void write_locations(base_text *out, const text_sources *s) {
  BASE_PUT(out, "\nFileLocations\n");
  for (uint32_t i = 0; i < s->n_locations; i++) {
    const ir_location *l = &s->from->locations[s->locations[i].row];
    base_put_u64(out, i + 1);
    write_source_field(out, " {file_name_id=", s->locations[i].file);
    write_source_field(out, " function_name_id=", s->locations[i].function);
    write_source_field(out, " line=", l->line);
    write_source_field(out, " end_line=", l->end_line);
    write_source_field(out, " column=", l->column);
    write_source_field(out, " end_column=", l->end_column);
    BASE_PUT(out, "}\n");
  }
}

/*   StackFrames
 *   1 {file_location_id=1 parent_frame_id=1} */
void text_write_sources(text_printer *p) {
  const text_sources *s = p->sources;
  base_text *out = p->out;
  if (!s || s->n_frames == 0) return;
  write_names(out, "\n\nFileNames\n", s->files, s->n_files);
  write_names(out, "\nFunctionNames\n", s->functions, s->n_functions);
  write_locations(out, s);
  BASE_PUT(out, "\nStackFrames\n"); /* a parent is written as its row plus one, none as one */
  for (uint32_t i = 0; i < s->n_frames; i++) {
    base_put_u64(out, i + 1);
    write_source_field(out, " {file_location_id=", s->frames[i].location);
    write_source_field(out, " parent_frame_id=", (int64_t)s->frames[i].parent + 1);
    BASE_PUT(out, "}\n");
  }
}
