"""One-op HLO programs over all opcodes, right and wrong ones alike.

Nobody says here which are right: a test asks real XLA. A snippet whose `result` is None leaves the result type out,
so that
reading it is inferring it; one with a `result` declares that type,
so that verifying it is comparing with the inferred one.
"""
import re
from typing import NamedTuple

F = ['f16', 'bf16', 'f32', 'f64', 'f8e4m3fn', 'f8e5m2']
I = ['s4', 's8', 's32', 'u4', 'u8', 'u64', 's2']
C = ['c64', 'c128']
ALL = F + I + C + ['pred']

HELPERS = {c.split(" ", 1)[0]: c for c in """
neg {
  a = f32[] parameter(0)
  ROOT r = f32[] negate(a)
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

addbf {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT r = bf16[] add(a, b)
}

adds {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b)
}

addv {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ROOT r = f32[2] add(a, b)
}

mixed {
  a = f32[] parameter(0)
  b = bf16[] parameter(1)
  c = f32[] convert(b)
  ROOT r = f32[] add(a, c)
}

add1 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  ROOT r = (f32[]) tuple(s)
}

add2 {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  e = f32[] add(a, c)
  f = s32[] add(b, d)
  ROOT r = (f32[], s32[]) tuple(e, f)
}

swap2 {
  a = f32[] parameter(0)
  b = s32[] parameter(1)
  c = f32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = (s32[], f32[]) tuple(b, a)
}

lt {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}

lt2 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT
}

ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=GE
}

sq {
  a = f32[4] parameter(0)
  ROOT r = f32[4] multiply(a, a)
}

sqd {
  a = f32[<=4] parameter(0)
  ROOT r = f32[<=4] multiply(a, a)
}

neg4 {
  a = f32[4] parameter(0)
  ROOT r = f32[4] negate(a)
}

sum4 {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  ROOT r = f32[4] add(a, b)
}

fst {
  a = (f32[4], s32[]) parameter(0)
  ROOT r = f32[4] get-tuple-element(a), index=0
}

idt {
  ROOT a = (f32[4], s32[]) parameter(0)
}

tot {
  a = f32[4] parameter(0)
  ROOT r = (f32[4]) tuple(a)
}

more {
  a = (f32[4], s32[]) parameter(0)
  i = s32[] get-tuple-element(a), index=1
  c = s32[] constant(3)
  ROOT r = pred[] compare(i, c), direction=LT
}

scanbody {
  x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] add(x, c)
  ROOT r = (f32[3], f32[3]) tuple(s, s)
}
""".strip().split("\n\n")}


class Snippet(NamedTuple):
    name: str
    opcode: str
    params: tuple
    expr: str  # "opcode(p0, p1), attributes"
    result: 'str | None'
    helpers: str  # names of HELPERS that must stand before the entry
    before: str  # instructions between parameters and root
    header: str  # attributes of the module

    def text(self, result=None):
        """The module, with the result type declared if there is one or one is given."""
        result = self.result or result
        lines = ['HloModule m' + self.header]
        lines += [HELPERS[h] for h in self.helpers.split()]
        lines += ['ENTRY e {']
        lines += [f'  p{i} = {p} parameter({i})' for i, p in enumerate(self.params)]
        lines += ['  ' + l for l in self.before.split('\n') if l]
        lines += ['  ROOT r = ' + (result + ' ' if result else '') + self.expr, '}']
        return '\n'.join(lines) + '\n'


def args(params):
    """"p0, p1, p2" for "f32[2]; f32[2]; s32[]"."""
    return ", ".join(f"p{i}" for i in range(len(params.split("; ")) if params else 0))


def _snippets():
    out, counts = [], {}

    def s(params, expr, result=None, helpers='', before='', header=''):
        opcode = expr.split('(', 1)[0]
        n = counts[opcode] = counts.get(opcode, 0) + 1
        out.append(Snippet(f'{opcode}-{n}', opcode, tuple(params.split('; ')) if params else (),
                           expr, result, helpers, before,
                           header))

    def elementwise():
        unary = ('abs acos acosh asin asinh atanh cbrt ceil count-leading-zeros cosine cosh erf exponential '
                 'exponential-minus-one floor imag is-finite log log-plus-one logistic negate not popcnt real '
                 'round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh').split()
        for op in unary:
            for t in ['f32', 'bf16', 's32', 'u8', 'c64', 'pred']:
                s(f'{t}[2,3]', f'{op}(p0)')
            s('f32[<=4,2]{0,1}', f'{op}(p0)')
            s('(f32[2], f32[])', f'{op}(p0)')
            s('f32[2]; f32[2]', f'{op}(p0, p1)')
        for t in ALL:
            s(f'{t}[3]', 'copy(p0)')
            s(f'{t}[3]', 'real(p0)')
            s(f'{t}[3]', 'is-finite(p0)')
            s(f'{t}[3]', 'abs(p0)')
        s('(f32[2], s32[])', 'copy(p0)')
        s('token[]', 'copy(p0)')
        s('f32[2,3]{0,1:T(2,128)S(1)}', 'is-finite(p0)')
        s('s4[8]{0:E(4)}', 'negate(p0)')
        s('c64[2,3]{0,1:S(1)}', 'imag(p0)')
        s('f32[?,2]', 'tanh(p0)')
        binary = ('add and atan2 divide maximum minimum mulhi multiply or power remainder '
                  'shift-left shift-right-arithmetic shift-right-logical subtract xor').split()
        for op in binary:
            for t in ['f32', 's32', 'u8', 'pred', 'c64']:
                s(f'{t}[2,3]; {t}[2,3]', f'{op}(p0, p1)')
            s('s32[2]; f32[2]', f'{op}(p0, p1)')
            s('s32[2]; s32[3]', f'{op}(p0, p1)')
            s('s32[2]; (s32[2])', f'{op}(p0, p1)')
            s('s32[2]', f'{op}(p0)')
        pairs = ['f32[2,3]; bf16[2,3]', 'f16[3]; bf16[3]', 'f8e4m3fn[3]; f8e5m2[3]', 'f8e4m3[3]; f8e4m3fn[3]',
                 'f8e8m0fnu[3]; f16[3]',
                 'f8e5m2[3]; f8e5m2fnuz[3]', 'f4e2m1fn[3]; f8e3m4[3]', 'f6e2m3fn[2]; f6e3m2fn[2]', 'f64[]; f16[]',
                 'f32[2,3]{0,1}; f32[2,3]',
                 'f32[2,3]; f32[2,3]{0,1}', 'f32[<=3]; f32[3]', 'f32[3]; f32[<=3]', 'f32[<=3]; f32[<=3]',
                 'f32[?]; f32[3]',
                 'f32[3]; f32[?]', 'f32[?]; f32[?]', 'f32[<=3]; f32[?]', 'f32[?]; f32[<=3]', 'f32[?]; f32[1]',
                 'f32[1]; f32[?]',
                 'f32[1]; f32[<=3]', 'f32[1,4]; f32[3,4]', 'f32[1,4]; f32[3,1]', 'f32[]; f32[3,4]',
                 'f32[3,4]{0,1}; f32[]',
                 'f32[3]; f32[3,4]', 'f32[2,3]{1,0:T(8,128)}; f32[2,3]', 'f32[0]; f32[0]', 'f32[0]; f32[1]',
                 'c64[2]; c128[2]',
                 's8[2]; s16[2]', 'token[]; token[]', 'f32[<=1]; f32[3]', 'f32[1]; f32[<=1]']
        for p in pairs:
            s(p, 'add(p0, p1)')
            s(p, 'compare(p0, p1), direction=LT')
            s(p, 'complex(p0, p1)')
            s(p, 'multiply(p0, p1)')
        for t in ALL:
            s(f'{t}[2]; {t}[2]', 'compare(p0, p1), direction=EQ')
            s(f'{t}[2]; {t}[2]', 'complex(p0, p1)')
            s(f'{t}[]; {t}[4]; {t}[]', 'clamp(p0, p1, p2)')
            s(f'pred[4]; {t}[4]; {t}[4]', 'select(p0, p1, p2)')
        s('s4[8]{0:E(4)}; s4[8]{0:E(4)}', 'add(p0, p1)')
        s('s4[8]{0:E(4)}; s4[8]', 'compare(p0, p1), direction=LT')
        for p in ['f32[4]; f32[4]; f32[4]', 'f32[]; f32[4]; f32[4]', 'f32[3]; f32[4]; f32[]', 'f32[]; f32[]; f32[4]',
                  'bf16[]; f32[4]; f16[]',
                  's32[]; f32[4]; f32[]', 'f32[]; f32[<=4]; f32[<=4]', 'f32[?]; f32[4]; f32[]',
                  '(f32[]); f32[4]; f32[]', 'f32[1]; f32[4]; f32[]']:
            s(p, 'clamp(p0, p1, p2)')
        for p in ['pred[]; f32[4]; f32[4]', 'pred[4]{0:S(1)}; f32[4]; bf16[4]', 'pred[3]; f32[4]; f32[4]',
                  's32[4]; f32[4]; f32[4]',
                  'pred[4]; f32[4]; s32[4]', 'pred[]; f32[4]; f32[5]', 'pred[]; (f32[]); (f32[])',
                  'pred[<=4]; f32[4]; f32[4]', 'pred[4]; f32[<=4]; f32[4]',
                  'pred[]; f32[?]; f32[4]', 'pred[]; f32[?]; f32[<=4]', 'pred[?]; f32[4]; f32[4]',
                  'pred[]; f32[?]; f32[?]', 'pred[1]; f32[4]; f32[4]',
                  'pred[2,2]{0,1}; f32[2,2]; f32[2,2]', 'pred[8]; s4[8]{0:E(4)}; s4[8]{0:E(4)}',
                  'pred[]; f32[2,2]{0,1}; f32[2,2]', 'pred[1]; f32[]; f32[]']:
            s(p, 'select(p0, p1, p2)')

    def movement():
        for p, d in [('f32[2,3]; f32[4,3]', 0), ('f32[2,3]; f32[2,4]', 1), ('f32[2,3]; f32[2,4]', 0), ('f32[2,3]', 0),
                     ('f32[2]; f32[2]', 1),
                     ('f32[2]; f32[2]', -1), ('f32[2]; bf16[2]', 0), ('f32[2]; s32[2]', 0), ('f32[2]; f32[2,1]', 0),
                     ('f32[]; f32[]', 0),
                     ('f32[<=2]; f32[3]', 0), ('f32[<=2]; f32[<=3]', 0), ('f32[?]; f32[3]', 0), ('f32[?]; f32[<=3]', 0),
                     ('f32[2,?]; f32[2,3]', 0),
                     ('f32[2,?]; f32[2,<=3]', 0), ('f32[2,<=4]; f32[2,<=3]', 0), ('f32[2,<=3]; f32[2,3]', 0),
                     ('f32[2,3]{0,1}; f32[2,3]{0,1}', 0),
                     ('f32[0]; f32[3]', 0), ('f32[2]; (f32[2])', 0), ('pred[2]; pred[1]; pred[5]', 0),
                     ('f32[2,?]; f32[2,3]; f32[2,4]', 0)]:
            s(p, f'concatenate({args(p)}), dimensions={{{d}}}')
        s('f32[2]; f32[2]', 'concatenate(p0, p1), dimensions={}')
        s('f32[2]; f32[2]', 'concatenate(p0, p1), dimensions={0,0}')
        s('', 'concatenate(), dimensions={0}')
        for p, perm in [('f32[2,3,4]', '2,0,1'), ('f32[2,3]{0,1}', '1,0'), ('f32[2,3]{0,1:T(2,128)S(1)}', '1,0'),
                        ('f32[2,3]', '0,0'), ('f32[2,3]', '0'),
                        ('f32[2,3]', '0,2'), ('f32[2,3]', '-1,0'), ('f32[]', ''), ('f32[<=2,3]', '1,0'),
                        ('f32[?,3]', '1,0'), ('(f32[2])', '0'),
                        ('f32[2,3,4]{0,2,1}', '1,2,0'), ('f32[2,3,4,5]', '3,1,0,2'), ('s4[2,3]{1,0:E(4)}', '1,0')]:
            s(p, f'transpose(p0), dimensions={{{perm}}}')
        for p, d in [('f32[2,3]', '0'), ('f32[2,3]', '1,0'), ('f32[2,3]', ''), ('f32[2,3]', '0,0'), ('f32[2,3]', '2'),
                     ('f32[2,3]', '-1'), ('f32[]', ''),
                     ('f32[<=2,3]{0,1}', '0'), ('token[]', '')]:
            s(p, f'reverse(p0), dimensions={{{d}}}')
        for p, pad in [('f32[3]; f32[]', '1_2'), ('f32[3]; f32[]', '1_2_3'), ('f32[3]; f32[]', '-1_-1'),
                       ('f32[3]; f32[]', '-2_-2'), ('f32[3]; f32[]', '0_0_-1'),
                       ('f32[2,3]; f32[]', '1_1x0_0_2'), ('f32[2,3]; f32[]', '1_1'), ('f32[3]; f32[1]', '1_1'),
                       ('f32[3]; bf16[]', '1_1'),
                       ('bf16[3]; f32[]', '1_1'), ('f32[3]; s32[]', '1_1'), ('f32[<=3]; f32[]', '1_1'),
                       ('f32[?]; f32[]', '1_1'), ('f32[0]; f32[]', '1_1_5'),
                       ('f32[9]; f32[]', '0_0_4611686018427387904'), ('f32[9]; f32[]', '9223372036854775807_0'),
                       ('(f32[3]); f32[]', '1_1'),
                       ('f32[2,3]{0,1}; f32[]', '1_1x1_1'), ('f32[1]; f32[]', '0_0_7')]:
            s(p, f'pad(p0, p1), padding={pad}')
        for p, d in [('f32[2,3]', '0'), ('f32[2,3]', '2'), ('f32[2,3]', '-1'), ('f32[<=2]', '0'), ('f32[]', '0'),
                     ('pred[3000000000]', '0'), ('(f32[2])', '0'), ('f32[2,3]', '0,1')]:
            s(p, f'get-dimension-size(p0), dimensions={{{d}}}')
        for p, d in [('f32[2,3]; s32[]', '0'), ('f32[2,3]; s32[]', '2'), ('f32[2,3]; s64[]', '0'),
                     ('f32[2,3]; s32[1]', '0'), ('f32[<=2,3]{0,1}; s32[]', '1'),
                     ('pred[3000000000]; s32[]', '0'), ('f32[2]; f32[]', '0')]:
            s(p, f'set-dimension-size(p0, p1), dimensions={{{d}}}')
        for p, sl, r in [('f32[8]', '[0:4]', 'f32[4]'), ('f32[8]', '[1:8:3]', 'f32[3]'),
                         ('f32[8]', '[1:8:3]', 'f32[2]'), ('f32[8]', '[0:9]', 'f32[9]'),
                         ('f32[8]', '[4:2]', 'f32[2]'), ('f32[8]', '[-1:2]', 'f32[3]'), ('f32[8]', '[0:4:0]', 'f32[4]'),
                         ('f32[8,2]', '[0:4]', 'f32[4,2]'),
                         ('f32[<=8]', '[0:4]', 'f32[<=4]'), ('f32[<=8]', '[0:1]', 'f32[1]'),
                         ('f32[8]', '[3:3]', 'f32[0]'), ('bf16[8]', '[0:4]', 'f32[4]'),
                         ('f32[8,2]', '[0:4], [0:2:2]', 'f32[4,1]'), ('f32[8]', '[0:4:9223372036854775807]', 'f32[1]')]:
            s(p, f'slice(p0), slice={{{sl}}}', r)
        for p, z, r in [('f32[8,4]; s32[]; s32[]', '2,3', 'f32[2,3]'), ('f32[8,4]; s32[]; s64[]', '2,3', 'f32[2,3]'),
                        ('f32[8,4]; f32[]; f32[]', '2,3', 'f32[2,3]'),
                        ('f32[8,4]; s32[2]', '2,3', 'f32[2,3]'), ('f32[8,4]; s32[3]', '2,3', 'f32[2,3]'),
                        ('f32[8,4]; s32[]; s32[]', '9,3', 'f32[9,3]'),
                        ('f32[8,4]; s32[]; s32[]', '-1,3', 'f32[1,3]'), ('f32[8,4]; s32[]; s32[]', '2', 'f32[2]'),
                        ('f32[<=8]; s32[]', '8', 'f32[<=8]'),
                        ('f32[<=8]; s32[]', '4', 'f32[4]'), ('f32[]', '', 'f32[]'), ('f32[8]; u8[]', '0', 'f32[0]'),
                        ('f32[8]; s32[1]', '3', 'f32[3]'),
                        ('f32[8]; s32[]', '3', 's32[3]'), ('f32[8]; pred[]', '3', 'f32[3]')]:
            s(p, f'dynamic-slice({args(p)}), dynamic_slice_sizes={{{z}}}', r)
        for p, r in [('f32[8,4]; f32[2,3]; s32[]; s32[]', 'f32[8,4]'), ('f32[8,4]; f32[9,3]; s32[]; s32[]', 'f32[8,4]'),
                     ('f32[8,4]; f32[2]; s32[]; s32[]', 'f32[8,4]'),
                     ('f32[8,4]; bf16[2,3]; s32[]; s32[]', 'f32[8,4]'),
                     ('f32[8,4]; s32[2,3]; s32[]; s32[]', 'f32[8,4]'), ('f32[8]; f32[2]; f32[]', 'f32[8]'),
                     ('f32[<=8]; f32[2]; s32[]', 'f32[<=8]'), ('f32[8]; f32[<=8]; s32[]', 'f32[<=8]'),
                     ('f32[]; f32[]', 'f32[]'), ('f32[8]; f32[2]; s32[1]', 'f32[8]'),
                     ('f32[8]; f32[2]; s32[]', 'f32[2]'), ('f32[8]; f32[2]; s32[]; s32[]', 'f32[8]')]:
            s(p, f'dynamic-update-slice({args(p)})', r)
        for p, d, r in [('f32[]', '', 'f32[4]'), ('f32[3]', '1', 'f32[2,3]'), ('f32[3]', '0', 'f32[2,3]'),
                        ('f32[3]', '', 'f32[2,3]'), ('f32[1]', '1', 'f32[2,3]'),
                        ('f32[3,2]', '1,0', 'f32[2,3]'), ('f32[3]', '2', 'f32[2,3]'), ('f32[<=3]', '1', 'f32[2,<=3]'),
                        ('s32[3]', '1', 'f32[2,3]'), ('f32[2,3]', '0,1', 'f32[3]')]:
            s(p, f'broadcast(p0), dimensions={{{d}}}', r)
        for p, r in [('f32[6]', 'f32[2,3]'), ('f32[6]', 'f32[2,2]'), ('f32[6]', 's32[2,3]'), ('f32[]', 'f32[1,1]'),
                     ('f32[0]', 'f32[0,7]'), ('f32[<=6]', 'f32[1,<=6]')]:
            s(p, 'reshape(p0)', r)
        for d, r in [(0, 'f32[4]'), (1, 'f32[4]'), (-1, 'f32[4]'), (0, 'f32[]'), (1, 's4[4,2]'), (0, 'pred[4]'),
                     (0, 'c64[3]')]:
            s('', f'iota(), iota_dimension={d}', r)
        for p, r in [('f32[4]', 's32[4]'), ('f32[4]', 's32[5]'), ('c64[4]', 'f32[4]'), ('(f32[4])', 'f32[4]'),
                     ('f32[<=4]', 'bf16[<=4]')]:
            s(p, 'convert(p0)', r)
        for p, r in [('f32[4]', 's32[4]'), ('f32[4]', 's8[4,4]'), ('s8[4,4]', 'f32[4]'), ('s8[4,2]', 'f32[4]'),
                     ('f32[4]', 'c64[4]'), ('f32[4]', 's8[4]'), ('f64[2]', 's32[2,2]'), ('s8[]', 'f32[]')]:
            s(p, 'bitcast-convert(p0)', r)

    def tuples():
        s('f32[4]; s32[]', 'tuple(p0, p1)')
        s('', 'tuple()')
        s('f32[4]{0:S(1)}; (f32[2,3]{0,1}, token[])', 'tuple(p0, p1)')
        for i in [0, 1, 2, -1]:
            s('(f32[4]{0:S(1)}, s32[])', f'get-tuple-element(p0), index={i}')
        s('f32[4]', 'get-tuple-element(p0), index=0')
        s('token[]; token[]', 'after-all(p0, p1)')
        s('', 'after-all()')
        s('f32[4]; token[]', 'add-dependency(p0, p1)')
        s('f32[4]', 'opt-barrier(p0)', 'f32[4]')
        s('(f32[4], s32[])', 'opt-barrier(p0)', '(f32[4], s32[])')
        s('f32[4]', 'opt-barrier(p0)', 'f32[5]')
        s('', 'replica-id()')
        s('', 'partition-id()')
        s('', 'replica-id()', 's32[]')
        s('f32[4]', 'domain(p0), domain={kind="sharding", entry={replicated}, exit={replicated}}')

    def contractions():
        def dot(p, lc, rc, lb='', rb='', op='dot', extra='', result=None):
            batch = f', lhs_batch_dims={{{lb}}}, rhs_batch_dims={{{rb}}}' if lb or rb else ''
            s(p, f'{op}({args(p)}){batch}, lhs_contracting_dims={{{lc}}}, rhs_contracting_dims={{{rc}}}{extra}', result)
        for a in [('f32[2,3]; f32[3,4]', '1', '0'), ('f32[2,3]; f32[4,3]', '1', '1'), ('f32[2,3]; f32[3,4]', '0', '0'),
                  ('f32[2,3]; f32[3,4]', '1', ''),
                  ('f32[2,3]; f32[3,4]', '', ''), ('f32[3]; f32[3]', '0', '0'), ('f32[]; f32[3]', '', ''),
                  ('f32[2,3]; f32[3,4]', '1,1', '0,0'),
                  ('f32[2,3]; f32[3,4]', '2', '0'), ('f32[2,3]; f32[3,4]', '-1', '0'), ('s8[2,3]; s32[3,4]', '1', '0'),
                  ('s8[2,3]; u8[3,4]', '1', '0'),
                  ('bf16[2,3]; f32[3,4]', '1', '0'), ('f32[2,3]; s32[3,4]', '1', '0'), ('c64[2,3]; f64[3,4]', '1', '0'),
                  ('pred[2,3]; pred[3,4]', '1', '0'),
                  ('f32[<=2,3]; f32[3,<=4]', '1', '0'), ('f32[?,3]; f32[3,?]', '1', '0'),
                  ('f32[2,?]; f32[3,4]', '1', '0'), ('f32[2,<=3]; f32[3,4]', '1', '0'),
                  ('(f32[2,3]); f32[3,4]', '1', '0'), ('f32[2,3]{0,1}; f32[3,4]{0,1}', '1', '0'),
                  ('u4[2,3]; s4[3,4]', '1', '0'), ('f8e5m2[2,3]; f8e5m2fnuz[3,4]', '1', '0'),
                  ('f8e4m3fn[2,3]; f8e5m2[3,4]', '1', '0'), ('f32[5,2,3]; f32[5,3,4]', '2', '1', '0', '0'),
                  ('f32[5,2,3]; f32[6,3,4]', '2', '1', '0', '0'),
                  ('f32[5,2,3]; f32[5,3,4]', '2', '1', '0', ''), ('f32[5,2,3]; f32[5,3,4]', '2', '1', '2', '0'),
                  ('f32[5,2,3]; f32[5,3,4]', '0,1', '0,1'),
                  ('f32[5,6,2,3]; f32[6,3,5,4]', '3', '1', '1,0', '0,2'),
                  ('f32[<=5,2,3]; f32[5,3,4]', '2', '1', '0', '0'), ('f32[2,0]; f32[0,4]', '1', '0')]:
            dot(*a)
        for r in ['f32[2,4]', 'f64[2,4]', 'bf16[2,4]', 's32[2,4]', 'f32[4,2]', 'f32[2,4,1]']:
            dot('f32[2,3]; f32[3,4]', '1', '0', result=r)
        for r in ['s32[2,4]', 's8[2,4]', 'f32[2,4]']:
            dot('s8[2,3]; s8[3,4]', '1', '0', result=r)
        rag = ', lhs_ragged_dims={%s}, rhs_group_dims={%s}'
        for p, lc, rc, lb, rb, lr, rg in [
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0', '0'),
            ('f32[11,5]; f32[4,5,7]; s32[3]', '1', '1', '', '', '0', '0'),
            ('f32[11,5]; f32[5,7]; s32[3]', '1', '0', '', '', '1', ''),
            ('f32[11,5]; f32[5,7]; s32[3]', '1', '0', '', '', '1', '0'),
            ('f32[2,11,5]; f32[2,5,7]; s32[3]', '2', '1', '0', '0', '0', ''),
            ('f32[2,11,5]; f32[2,3,5,7]; s32[2,3]', '2', '2', '0', '0', '1', '1'),
            ('f32[2,11,5]; f32[2,3,5,7]; s32[5,3]', '2', '2', '0', '0', '1', '1'),
            ('f32[2,11,5]; f32[2,5,7]; s32[2,3]', '2', '1', '0', '0', '2', ''),
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0,1', '0'),
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '2', '0'),
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0', '1'),
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0', '3'),
            ('f32[11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0', ''),
            ('f32[<=11,5]; f32[3,5,7]; s32[3]', '1', '1', '', '', '0', '0'),
            ('bf16[11,5]; f32[3,5,7]; s64[3]', '1', '1', '', '', '0', '0')]:
            dot(p, lc, rc, lb, rb, 'ragged-dot', rag % (lr, rg))
        for r in ['f32[2,4]', 'f32[2,5]', 'bf16[2,4]']:
            dot('f8e4m3fn[2,32]; f8e4m3fn[4,32]; f8e8m0fnu[2,1]; f8e8m0fnu[4,1]', '1', '1', op='scaled-dot', result=r)

        def conv(p, labels, window='', extra='', result=None):
            w = f'window={{{window}}}, ' if window else ''
            s(p, f'convolution(p0, p1), {w}dim_labels={labels}{extra}', result)
        L2, L1 = 'b01f_01io->b01f', 'b0f_0io->b0f'
        for a in [('f32[1,8,8,3]; f32[3,3,3,16]', L2, 'size=3x3'),
                  ('f32[1,8,8,3]; f32[3,3,3,16]', L2, 'size=3x3 pad=1_1x1_1 stride=2x2'),
                  ('f32[1,8,8,3]; f32[3,3,3,16]', L2, 'size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_dilate=2x3'),
                  ('f32[1,8,8,4]; f32[3,3,2,16]', L2, 'size=3x3', ', feature_group_count=2'),
                  ('f32[1,8,8,4]; f32[3,3,2,15]', L2, 'size=3x3', ', feature_group_count=2'),
                  ('f32[1,8,8,4]; f32[3,3,4,15]', L2, 'size=3x3', ', feature_group_count=2'),
                  ('f32[4,8,8,3]; f32[3,3,3,16]', L2, 'size=3x3', ', batch_group_count=2'),
                  ('f32[3,8,8,3]; f32[3,3,3,16]', L2, 'size=3x3', ', batch_group_count=2'),
                  ('f32[4,8,8,3]; f32[3,3,3,15]', L2, 'size=3x3', ', batch_group_count=2'),
                  ('f32[4,8,8,4]; f32[3,3,2,16]', L2, 'size=3x3', ', batch_group_count=2, feature_group_count=2'),
                  ('f32[1,8,8,3]; f32[3,3,3,16]', L2, 'size=3x2'), ('f32[1,8,8,3]; f32[3,3,3,16]', L2),
                  ('f32[1,8,8,3]; f32[3,3,3,16]', L2, 'size=3'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3'), ('f32[1,8,3]; f32[3,3,3,16]', L1, 'size=3'),
                  ('f32[1,8,3]; f32[3,3,16]', 'b0f_0io->bf0', 'size=3'),
                  ('f32[3,5]; f32[5,7]', 'bf_io->bf'), ('f32[3,5]; f32[5,7]', 'bf_oi->fb'),
                  ('f32[3,5]; f32[6,7]', 'bf_io->bf'), ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3 stride=0'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3 pad=-9_0'), ('f32[1,2,3]; f32[3,3,16]', L1, 'size=3'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3 rhs_reversal=1'),
                  ('bf16[1,8,3]; f32[3,3,16]', L1, 'size=3'), ('s8[1,8,3]; s8[3,3,16]', L1, 'size=3'),
                  ('f32[<=1,8,3]; f32[3,3,16]', L1, 'size=3'), ('f32[1,<=8,3]; f32[3,3,16]', L1, 'size=3'),
                  ('f32[1,?,3]; f32[3,3,16]', L1, 'size=3'), ('f32[?,8,3]; f32[3,3,16]', L1, 'size=3'),
                  ('f32[1,8,3]; f32[3,3,<=16]', L1, 'size=3'), ('f32[1,8,<=3]; f32[3,3,16]', L1, 'size=3'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3', ', feature_group_count=0'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3', ', feature_group_count=-1'),
                  ('f32[1,8,3]; f32[3,3,16]', L1, 'size=3 lhs_dilate=9223372036854775807'),
                  ('(f32[1,8,3]); f32[3,3,16]', L1, 'size=3'), ('f32[1,0,3]; f32[3,3,16]', L1, 'size=3')]:
            conv(*a)
        for r in ['f32[1,6,16]', 'f64[1,6,16]', 'f32[1,7,16]', 's32[1,6,16]']:
            conv('f32[1,8,3]; f32[3,3,16]', L1, 'size=3', result=r)

    def reductions():
        for p, d, h in [('f32[2,3]; f32[]', '1', 'add'), ('f32[2,3]; f32[]', '0,1', 'add'),
                        ('f32[2,3]; f32[]', '', 'add'), ('f32[2,3]; f32[]', '2', 'add'),
                        ('f32[2,3]; f32[]', '1,1', 'add'),
                        ('f32[2,3]; f32[]', '-1', 'add'), ('bf16[2,3]; f32[]', '1', 'add'),
                        ('bf16[2,3]; bf16[]', '1', 'add'), ('f32[2,3]; f32[]', '1', 'mixed'),
                        ('s32[2,3]; s32[]', '1', 'add'), ('f32[2,3]; s32[]', '1', 'add'),
                        ('f32[2,3]; f32[1]', '1', 'add'), ('f32[2,3]; f32[]', '1', 'addv'),
                        ('f32[2,3]; f32[]', '1', 'neg'), ('f32[2,3]; f32[]', '1', 'add1'),
                        ('f32[<=2,3]; f32[]', '1', 'add'),
                        ('f32[2,<=3]; f32[]', '1', 'add'), ('f32[?,3]; f32[]', '1', 'add'),
                        ('f32[2,3]{0,1}; f32[]', '', 'add'), ('(f32[2]); f32[]', '0', 'add'),
                        ('f32[2,3]; f32[]', '1', 'lt'), ('f32[2,3]', '1', 'add')]:
            s(p, f'reduce({args(p)}), dimensions={{{d}}}, to_apply={h}', helpers=h)
        for p, h in [('f32[2,3]; s32[2,3]; f32[]; s32[]', 'add2'), ('f32[2,3]; s32[3,3]; f32[]; s32[]', 'add2'),
                     ('f32[2,3]; s32[2,3]; s32[]; f32[]', 'add2'), ('f32[2,3]; s32[2,3]; f32[]; s32[]', 'swap2'),
                     ('f32[2,3]; s32[2,3]; f32[]; s32[]', 'add'), ('bf16[2,3]; s32[2,3]; f32[]; s32[]', 'add2'),
                     ('f32[<=2,3]; s32[2,3]; f32[]; s32[]', 'add2')]:
            s(p, f'reduce(p0, p1, p2, p3), dimensions={{1}}, to_apply={h}', helpers=h)
            s(p, f'reduce-window(p0, p1, p2, p3), window={{size=1x2}}, to_apply={h}', '(f32[2,2], s32[2,2])', helpers=h)
        for p, w, h in [('f32[4,6]; f32[]', 'size=2x2', 'add'), ('f32[4,6]; f32[]', 'size=2x2 stride=2x2', 'add'),
                        ('f32[4,6]; f32[]', 'size=2x2 pad=1_0x0_1', 'add'),
                        ('f32[4,6]; f32[]', 'size=2x2 lhs_dilate=2x2 rhs_dilate=3x1', 'add'),
                        ('f32[4,6]; f32[]', 'size=2', 'add'), ('f32[4,6]; f32[]', 'size=5x7', 'add'),
                        ('f32[4,6]; f32[]', 'size=0x1', 'add'), ('f32[4,6]; f32[]', 'size=1x1 stride=0x1', 'add'),
                        ('f32[4,6]; f32[]', 'size=1x1 pad=-3_-3x0_0', 'add'),
                        ('f32[<=4,6]; f32[]', 'size=2x2', 'add'), ('f32[?,6]; f32[]', 'size=2x2', 'add'),
                        ('bf16[4,6]; f32[]', 'size=2x2', 'add'), ('f32[4,6]; bf16[]', 'size=2x2', 'add'),
                        ('s32[4,6]; f32[]', 'size=2x2', 'add'), ('f32[4,6]; f32[]', 'size=2x2', 'lt'),
                        ('f32[4,6]{0,1}; f32[]', 'size=2x2', 'add'), ('f32[0,6]; f32[]', 'size=2x2', 'add'),
                        ('f32[4,6]; f32[]', 'size=2x2 lhs_dilate=0x1', 'add'),
                        ('f32[4,6]; f32[]', 'size=1x1 pad=9223372036854775807_1x0_0', 'add')]:
            s(p, f'reduce-window(p0, p1), window={{{w}}}, to_apply={h}', helpers=h)
        s('f32[]; f32[]', 'reduce-window(p0, p1), to_apply=add', helpers='add')
        s('f32[4]; f32[]', 'reduce-window(p0, p1), to_apply=add', helpers='add')
        for p, w, a, b in [('f32[4,6]; f32[2,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('f32[4,6]; f32[3,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('f32[4,6]; f32[2,3]; f32[]', 'size=2x2 stride=2x2', 'add', 'add'),
                           ('f32[4,6]; f32[2,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'ge'),
                           ('f32[4,6]; f32[2,3]; f32[1]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('f32[4,6]; bf16[2,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('f32[4,6]; s32[2,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('f32[<=4,6]{0,1}; f32[<=2,3]; f32[]', 'size=2x2 stride=2x2', 'ge', 'add'),
                           ('s32[4,6]; s32[2,3]; s32[]', 'size=2x2 stride=2x2', 'ge', 'adds'),
                           ('f32[4,6]; f32[2,3]; f32[]', 'size=2', 'ge', 'add'),
                           ('f32[4,6]; f32[2,3]; f32[]', 'size=2x2 stride=2x2', 'neg', 'add')]:
            s(p, f'select-and-scatter(p0, p1, p2), window={{{w}}}, select={a}, scatter={b}',
              helpers=a if a == b else f'{a} {b}')
        for p, d, h in [('f32[4]', '0', 'lt'), ('f32[4,2]{0,1}', '1', 'lt'), ('f32[4]', '1', 'lt'),
                        ('f32[4]', '0', 'add'), ('f32[4]; s32[4]', '0', 'lt2'), ('f32[4]; s32[5]', '0', 'lt2'),
                        ('f32[4]; f32[4]', '0', 'lt'), ('f32[<=4]; s32[4]', '0', 'lt2'), ('bf16[4]', '0', 'lt'),
                        ('s32[4]', '0', 'lt')]:
            s(p, f'sort({args(p)}), dimensions={{{d}}}, to_apply={h}', helpers=h)
        for p, k in [('f32[2,8]', 3), ('f32[8]', 8), ('f32[8]', 9), ('f32[8]', 0), ('bf16[<=2,8]', 2),
                     ('f32[2,<=8]', 2), ('f32[2,8]{0,1}', 3), ('(f32[8])', 1), ('s32[8]', 2)]:
            s(p, f'topk(p0), k={k}, largest=true')
        for p, d, h in [('f32[4]', '{0}', 'neg'), ('f32[4]; f32[4]', '{0}', 'add'), ('f32[4]; f32[5]', '{0}', 'add'),
                        ('f32[4]; f32[]', '{0}', 'add'), ('f32[]; f32[4]', '{0}', 'add'), ('f32[4]', '{0}', 'add'),
                        ('bf16[4]', '{0}', 'neg'), ('s32[4]', '{0}', 'neg'),
                        ('f32[4,2]', '{0}', 'neg'), ('f32[4,2]', '{1,0}', 'neg'), ('f32[4,2]{0,1}', '{0,1}', 'neg'),
                        ('f32[]', '{}', 'neg'), ('f32[<=4]', '{0}', 'neg'), ('f32[4]; f32[4]', '{0}', 'lt'),
                        ('f32[4]; f32[4]', '{0}', 'addv'), ('f32[?]', '{0}', 'neg')]:
            s(p, f'map({args(p)}), dimensions={d}, to_apply={h}', helpers=h)
        for p, d, c in [('f32[5,3]; f32[3]', '0', 1), ('f32[3,5]; f32[3]', '1', 1), ('f32[5,3]; f32[3]', '2', 1),
                        ('f32[5,3]; f32[3]', '0', 3), ('f32[5,3]; f32[3]', '0,1', 1)]:
            s(p, f'scan(p0, p1), dimensions={{{d}}}, num_carries={c}, to_apply=scanbody', helpers='scanbody')

    def indexing():
        def gather(p, off, col, smap, ivd, sizes, ob=None, ib=None):
            b = f', operand_batching_dims={{{ob}}}, start_indices_batching_dims={{{ib}}}' if ob is not None else ''
            s(p, f'gather(p0, p1), offset_dims={{{off}}}, collapsed_slice_dims={{{col}}}, '
                 f'start_index_map={{{smap}}}{b}, index_vector_dim={ivd}, slice_sizes={{{sizes}}}')
        for a in [('f32[10,20]; s32[5,2]', '1,2', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1', '0', '0,1', 1, '1,4'),
                  ('f32[10,20]; s32[5,2]', '1', '0', '0,1', 1, '2,4'), ('f32[10,20]; s32[5]', '1', '0', '0', 1, '1,20'),
                  ('f32[10,20]; s32[2,5]', '1', '0', '0,1', 0, '1,4'),
                  ('f32[10,20]; s32[5,2]', '2,1', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,1', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,3', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; f32[5,2]', '1,2', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s32[5,3]', '1,2', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,2', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,0', 1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,1', 3, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,1', -1, '3,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,1', 1, '3'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,1', 1, '11,4'),
                  ('f32[10,20]; s32[5,2]', '1,2', '', '0,1', 1, '-1,4'),
                  ('f32[10,20]; s32[5,2]', '1', '0,1', '0,1', 1, '1,1'),
                  ('f32[10,20]; s32[5,2]', '', '0,1', '0,1', 1, '1,1'),
                  ('f32[10,20]; s32[5,2]', '', '1,0', '0,1', 1, '1,1'),
                  ('f32[10,20]; s32[5,2]', '', '0,0', '0,1', 1, '1,1'),
                  ('f32[<=10,20]; s32[<=5,2]', '1,2', '', '0,1', 1, '10,4'),
                  ('f32[<=10,20]; s32[5,2]', '1,2', '', '0,1', 1, '3,4'),
                  ('f32[10,20]; s64[5,6,2]', '0,3', '', '0,1', 2, '3,4'),
                  ('f32[10,20]; s32[10,1]', '1', '', '1', 1, '1,4', '0', '0'),
                  ('f32[10,20]; s32[10,1]', '1', '0', '1', 1, '1,4', '0', '0'),
                  ('f32[10,20]; s32[10,1]', '1', '', '1', 1, '1,4', '0', ''),
                  ('f32[10,20]; s32[10,1]', '1', '', '1', 1, '2,4', '0', '0'),
                  ('f32[10,20]; s32[10,1]', '1', '', '1', 1, '1,4', '2', '0'),
                  ('f32[10,20]; s32[10,1]', '1', '', '1', 1, '1,4', '0', '5'),
                  ('(f32[10]); s32[5]', '', '0', '0', 1, '1'), ('f32[10]; s32[]', '', '0', '0', 0, '1'),
                  ('f32[10]; s32[]', '0', '', '0', 0, '3'), ('f32[?,20]; s32[5,2]', '1,2', '', '0,1', 1, '3,4')]:
            gather(*a)

        def scatter(p, win, ins, smap, ivd, h='add', ib=None, sb=None):
            b = f', input_batching_dims={{{ib}}}, scatter_indices_batching_dims={{{sb}}}' if ib is not None else ''
            s(p, f'scatter({args(p)}), update_window_dims={{{win}}}, inserted_window_dims={{{ins}}}, '
                 f'scatter_dims_to_operand_dims={{{smap}}}{b}, index_vector_dim={ivd}, to_apply={h}', helpers=h)
        for a in [('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,4]', '1', '0', '0,1', 1),
                  ('f32[10,20]; s32[5]; f32[5,20]', '1', '0', '0', 1),
                  ('f32[10,20]; s32[5,2]; f32[6,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,11,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '2,1', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,1', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,3', '', '0,1', 1),
                  ('f32[10,20]; f32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,3]; f32[5,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,2', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,0', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 3),
                  ('f32[10,20]; s32[5,2]; f32[5,4]', '1', '2', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,4]', '1', '0,1', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; bf16[5,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; s32[5,3,4]', '1,2', '', '0,1', 1),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1, 'lt'),
                  ('f32[10,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1, 'neg'),
                  ('f32[10,20]; s32[10,1]; f32[10,4]', '1', '', '1', 1, 'add', '0', '0'),
                  ('f32[10,20]; s32[10,1]; f32[10,4]', '1', '0', '1', 1, 'add', '0', '0'),
                  ('f32[10,20]; s32[10,1]; f32[10,4]', '1', '', '1', 1, 'add', '0', ''),
                  ('f32[10,20]; s32[10,1]; f32[10,4]', '1', '', '1', 1, 'add', '7', '0'),
                  ('f32[10]; s32[10]; s32[5]; f32[5]; s32[5]', '', '0', '0', 1, 'add2'),
                  ('f32[10]; s32[11]; s32[5]; f32[5]; s32[5]', '', '0', '0', 1, 'add2'),
                  ('f32[10]; s32[10]; s32[5]; f32[5]; s32[6]', '', '0', '0', 1, 'add2'),
                  ('f32[10]; s32[]; f32[]', '', '0', '0', 0), ('f32[10]; s32[5]', '', '0', '0', 1),
                  ('f32[<=10,20]{0,1}; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1),
                  ('(f32[10]); s32[5]; f32[5]', '', '0', '0', 1),
                  ('f32[10,20]; s32[2,5]; f32[5,4]', '1', '0', '0,1', 0),
                  ('f32[?,20]; s32[5,2]; f32[5,3,4]', '1,2', '', '0,1', 1)]:
            scatter(*a)

    def linalg():
        for p in ['f32[3,3]', 'f32[2,3,3]{0,1,2}', 'f32[3,4]', 'f32[3]', 's32[3,3]', 'c64[3,3]', 'f32[?,3]',
                  '(f32[3,3])', 'f32[<=3,3]']:
            s(p, 'cholesky(p0), lower=true')
        for p, o in [('f32[3,3]; f32[3,4]', 'left_side=true, lower=true, transpose_a=NO_TRANSPOSE'),
                     ('f32[3,3]; f32[4,3]', 'left_side=true, transpose_a=NO_TRANSPOSE'),
                     ('f32[3,3]; f32[4,3]', 'transpose_a=ADJOINT'), ('f32[3,3]; f32[3,4]', 'left_side=true'),
                     ('f32[2,3,3]; f32[2,3,4]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[2,3,3]; f32[5,3,4]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[3,3]; f64[3,4]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[3,3]; f32[3]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('s32[3,3]; s32[3,4]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[3,2]; f32[3,4]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[3]; f32[3]', 'left_side=true, transpose_a=TRANSPOSE'),
                     ('f32[3,3]; f32[3,4]{0,1}', 'left_side=true, transpose_a=TRANSPOSE')]:
            s(p, f'triangular-solve(p0, p1), {o}')
        for p, t, l in [('c64[4,8]', 'FFT', '8'), ('c128[4,8]', 'IFFT', '4,8'), ('f32[4,8]', 'FFT', '8'),
                        ('f32[4,8]', 'RFFT', '8'), ('f64[4,8]', 'RFFT', '4,8'), ('f32[4,8]', 'RFFT', '7'),
                        ('bf16[4,8]', 'RFFT', '8'), ('c64[4,5]', 'IRFFT', '8'), ('c64[4,5]', 'IRFFT', '9'),
                        ('c64[4,5]', 'IRFFT', '7'),
                        ('c64[4,5]', 'IRFFT', '3,8'), ('f32[4,5]', 'IRFFT', '8'), ('c64[4]', 'FFT', '4,4'),
                        ('c64[4,4,4,4]', 'FFT', '4,4,4,4'), ('c64[4]', 'FFT', ''), ('f32[4,0]', 'RFFT', '0'),
                        ('c64[4,0]', 'IRFFT', '0'), ('f32[<=4,8]{0,1}', 'RFFT', '8'), ('f32[4,?]', 'RFFT', '8'),
                        ('f32[4,<=8]', 'RFFT', '8'),
                        ('c64[4,<=5]', 'IRFFT', '8'), ('c64[4,?]', 'IRFFT', '8'), ('c64[1]', 'IRFFT', '-1'),
                        ('(c64[4])', 'FFT', '4'), ('c64[4,8]', 'FFT', '3')]:
            s(p, f'fft(p0), fft_type={t}, fft_length={{{l}}}')
        v, m = 'f32[3]', 'f32[2,4,3]'
        for p, f in [(f'{m}; {v}; {v}', 2), (f'{m}; {v}; {v}', 0), (f'{m}; {v}; {v}', 3), (f'{m}; {v}; {v}', -1),
                     (f'{m}; f32[4]; {v}', 2), (f'{m}; f32[3,1]; {v}', 2), (f'{m}; bf16[3]; {v}', 2),
                     (f's32[2,4,3]; s32[3]; s32[3]', 2), (f'{m}; s32[3]; {v}', 2), (f'f32[2,4,<=3]; {v}; {v}', 2),
                     (f'f32[2,4,3]{{0,1,2}}; {v}; {v}', 2), (f'f32[]; {v}; {v}', 0)]:
            s(p, f'batch-norm-training(p0, p1, p2), epsilon=0.001, feature_index={f}')
        for p, f in [(f'{m}; {v}; {v}; {v}; {v}', 2), (f'{m}; {v}; {v}; {v}; f32[4]', 2),
                     (f'{m}; {v}; {v}; f32[3,1]; {v}', 2), (f'{m}; {v}; {v}; {v}; {v}', 7),
                     (f'{m}; {v}; {v}; s32[3]; {v}', 2), (f'{m}; {v}; {v}; bf16[3]; {v}', 2)]:
            s(p, f'batch-norm-inference(p0, p1, p2, p3, p4), epsilon=0.001, feature_index={f}')
        for p, f in [(f'{m}; {v}; {v}; {v}; {m}', 2), (f'{m}; {v}; {v}; {v}; f32[2,4,4]', 2),
                     (f'{m}; {v}; {v}; {v}; {v}', 2), (f'{m}; {v}; {v}; f32[4]; {m}', 2),
                     (f'{m}; {v}; {v}; {v}; s32[2,4,3]', 2), (f'{m}; {v}; {v}; {v}; bf16[2,4,3]', 2),
                     (f'{m}; {v}; {v}; {v}; {m}', -2)]:
            s(p, f'batch-norm-grad(p0, p1, p2, p3, p4), epsilon=0.001, feature_index={f}')

    def control():
        for p, h in [('f32[4]', 'sq'), ('f32[5]', 'sq'), ('bf16[4]', 'sq'), ('f32[4]; f32[4]', 'sq'),
                     ('f32[4]; f32[4]', 'sum4'), ('f32[<=4]', 'sq'), ('f32[4]{0:S(1)}', 'sq'),
                     ('(f32[4], s32[])', 'fst'), ('(f32[4], s32[])', 'idt'), ('f32[?]', 'sq')]:
            s(p, f'call({args(p)}), to_apply={h}', helpers=h)
            s(p, f'fusion({args(p)}), kind=kLoop, calls={h}', 'f32[4]', helpers=h)
        for p, c, b in [('(f32[4], s32[])', 'more', 'idt'), ('(f32[4], s32[])', 'more', 'fst'),
                        ('(f32[4], s32[])', 'idt', 'idt'), ('(f32[5], s32[])', 'more', 'idt'),
                        ('f32[4]', 'more', 'idt'), ('(f32[<=4], s32[])', 'more', 'idt'),
                        ('(f32[4], s32[])', 'lt', 'idt')]:
            s(p, f'while(p0), condition={c}, body={b}', helpers=c if c == b else f'{c} {b}')
        for p, a, b in [('pred[]; f32[4]; f32[4]', 'sq', 'neg4'), ('pred[]; f32[4]; (f32[4], s32[])', 'sq', 'fst'),
                        ('pred[]; f32[4]; f32[5]', 'sq', 'neg4'), ('pred[]; f32[4]; (f32[4], s32[])', 'sq', 'idt'),
                        ('pred[1]; f32[4]; f32[4]', 'sq', 'neg4'), ('pred[]; f32[4]; f32[<=4]', 'sq', 'sqd'),
                        ('f32[]; f32[4]; f32[4]', 'sq', 'neg4'), ('pred[]; f32[4]; f32[4]', 'sq', 'sum4')]:
            s(p, f'conditional(p0, p1, p2), true_computation={a}, false_computation={b}', helpers=f'{a} {b}')
        for p, bs in [('s32[]; f32[4]; f32[4]', 'sq neg4'), ('s32[]; f32[4]', 'sq'), ('s32[]; f32[4]; f32[4]', 'sq'),
                      ('u32[]; f32[4]; f32[4]', 'sq neg4'), ('s32[]; f32[4]; f32[<=4]; f32[4]', 'sq sqd neg4'),
                      ('s32[]; f32[4]; (f32[4], s32[])', 'tot idt')]:
            s(p, f'conditional({args(p)}), branch_computations={{{bs.replace(" ", ", ")}}}', helpers=bs)

    def collectives():
        g2 = 'replica_groups={{0,1}}'
        h2 = ', replica_count=2'
        for p, r in [('f32[4]', 'f32[4]'), ('f32[4]', 'f32[5]'), ('f32[4]; f32[2]', '(f32[4], f32[2])'),
                     ('f32[4]; bf16[2]', '(f32[4], bf16[2])'), ('(f32[4])', '(f32[4])')]:
            s(p, f'all-reduce({args(p)}), {g2}, to_apply=add', r, 'add', header=h2)
        for p, d, r in [('f32[4]', 0, 'f32[8]'), ('f32[4]', 0, 'f32[4]'), ('f32[4]', 1, 'f32[8]'),
                        ('f32[4,2]', 1, 'f32[4,4]'), ('f32[4]; f32[2]', 0, '(f32[8], f32[4])'), ('f32[4]', 0, 's32[8]'),
                        ('f32[<=4]', 0, 'f32[<=8]')]:
            s(p, f'all-gather({args(p)}), {g2}, dimensions={{{d}}}', r, header=h2)
            s(p, f'all-gather({args(p)}), {g2}, dimensions={{{d}}}', r)
            s(p, f'all-gather({args(p)}), dimensions={{{d}}}', r)
        for p, d, r in [('f32[4]', 0, 'f32[2]'), ('f32[4]', 0, 'f32[4]'), ('f32[5]', 0, 'f32[3]'),
                        ('f32[4,2]', 1, 'f32[4,1]'), ('f32[4]; f32[2]', 0, '(f32[2], f32[1])'),
                        ('f32[4]', 1, 'f32[2]')]:
            s(p, f'reduce-scatter({args(p)}), {g2}, dimensions={{{d}}}, to_apply=add', r, 'add', header=h2)
            s(p, f'reduce-scatter({args(p)}), dimensions={{{d}}}, to_apply=add', r, 'add')
        for p, d, r in [('f32[4]', '{0}', 'f32[4]'), ('f32[5]', '{0}', 'f32[5]'), ('f32[4,2]', '{1}', 'f32[4,2]'),
                        ('f32[4]', '{1}', 'f32[4]'), ('f32[<=4]', '{0}', 'f32[<=4]')]:
            s(p, f'all-to-all(p0), {g2}, dimensions={d}', r, header=h2)
        for p, r in [('f32[4]; f32[4]', '(f32[4], f32[4])'), ('f32[4]; f32[5]', '(f32[4], f32[5])'),
                     ('f32[4]', '(f32[4])'), ('f32[4]; f32[4]; f32[4]', '(f32[4], f32[4], f32[4])')]:
            s(p, f'all-to-all({args(p)}), {g2}', r, header=h2)
        for p, r in [('f32[4]', 'f32[4]'), ('f32[4]', 'f32[5]'), ('f32[4]; s32[2]', '(f32[4], s32[2])')]:
            s(p, f'collective-permute({args(p)}), source_target_pairs={{{{0,1}},{{1,0}}}}', r, header=h2)
        s('f32[4]', f'collective-broadcast(p0), {g2}', 'f32[4]', header=h2)
        s('f32[4]', f'collective-broadcast(p0), {g2}', 'f32[5]', header=h2)
        ra = 'f32[8]; f32[8]; s32[2]; s32[2]; s32[2]; s32[2]'
        s(ra, f'ragged-all-to-all(p0, p1, p2, p3, p4, p5), {g2}', 'f32[8]', header=h2)
        s(ra, f'ragged-all-to-all(p0, p1, p2, p3, p4, p5), {g2}', 'f32[9]', header=h2)

    def pairs():
        s('f32[4]', 'copy-done(c)', 'f32[4]', before='c = (f32[4], f32[4], u32[]) copy-start(p0)')
        s('f32[4]', 'copy-done(c)', 'f32[5]', before='c = (f32[4], f32[4], u32[]) copy-start(p0)')
        s('f32[4]', 'copy-done(c)', 'f32[4]', before='c = (f32[4], f32[5], u32[]) copy-start(p0)')
        s('f32[4]', 'copy-done(c)', 'f32[4]', before='c = (f32[4], f32[4], s32[]) copy-start(p0)')
        s('f32[4]', 'copy-done(c)', 'f32[4]{0:S(5)}', before='c = (f32[4]{0:S(5)}, f32[4], u32[]) copy-start(p0)')
        s('f32[4]', 'all-reduce-done(c)', 'f32[4]', 'add', before='c = f32[4] all-reduce-start(p0), to_apply=add')
        s('f32[4]', 'all-reduce-done(c)', 'f32[4]', 'add', before='c = f32[5] all-reduce-start(p0), to_apply=add')
        s('f32[4]', 'all-gather-done(c)', 'f32[8]', before='c = (f32[4], f32[8]) all-gather-start(p0), dimensions={0}')
        s('f32[4]', 'all-gather-done(c)', 'f32[8]', before='c = (f32[4], f32[9]) all-gather-start(p0), dimensions={0}')
        s('f32[4]; f32[2]', 'all-gather-done(c)', '(f32[8], f32[4])',
          before='c = ((f32[4], f32[2]), (f32[8], f32[4])) all-gather-start(p0, p1), dimensions={0}')
        for ctx in ['', ', u32[]', ', u32[], u32[]', ', s8[3]']:
            s('f32[4]', 'collective-permute-done(c)', 'f32[4]',
              before=f'c = (f32[4], f32[4]{ctx}) collective-permute-start(p0), source_target_pairs={{{{0,1}},{{1,0}}}}',
              header=', replica_count=2')
        s('f32[4]', 'collective-permute-done(c)', 'f32[4]',
          before='c = (f32[4], f32[5]) collective-permute-start(p0), source_target_pairs={{0,1},{1,0}}',
          header=', replica_count=2')
        s('f32[4]', 'async-done(c)', 'f32[4]', 'sq', before='c = ((f32[4]), f32[4], u32[]) async-start(p0), calls=sq')
        s('f32[4]', 'async-done(c)', 'f32[5]', 'sq', before='c = ((f32[4]), f32[4], u32[]) async-start(p0), calls=sq')
        s('f32[4]', 'async-done(u)', 'f32[4]', 'sq',
          before='c = ((f32[4]), f32[4], u32[]) async-start(p0), calls=sq\n'
                 'u = ((f32[4]), f32[4], u32[]) async-update(c)')
        s('f32[4]', 'async-done(c)', 'f32[4]', 'sq', before='c = ((f32[4]), f32[5], u32[]) async-start(p0), calls=sq')
        s('f32[4]', 'send-done(c), channel_id=1', 'token[]',
          before='t = token[] after-all()\nc = (f32[4], u32[], token[]) send(p0, t), channel_id=1')
        s('f32[4]', 'send-done(c), channel_id=1', 'token[]',
          before='t = token[] after-all()\nc = (f32[5], u32[], token[]) send(p0, t), channel_id=1')
        s('', 'recv-done(c), channel_id=1', '(f32[4], token[])',
          before='t = token[] after-all()\nc = (f32[4], u32[], token[]) recv(t), channel_id=1')
        s('', 'recv-done(c), channel_id=1', '(f32[5], token[])',
          before='t = token[] after-all()\nc = (f32[4], u32[], token[]) recv(t), channel_id=1')
        s('f32[4]', 'outfeed(p0, t), outfeed_shape=f32[4]', 'token[]', before='t = token[] after-all()')
        s('', 'infeed(t)', '(f32[4], token[])', before='t = token[] after-all()')
        s('u64[2]', 'rng-bit-generator(p0), algorithm=rng_philox', '(u64[2], u32[4])')
        s('', 'rng-get-and-update-state(), delta=1', 'u64[2]')
        s('f32[]; f32[]', 'rng(p0, p1), distribution=rng_uniform', 'f32[4]')
        s('f32[4]', 'reduce-precision(p0), exponent_bits=5, mantissa_bits=10', 'f32[4]')
        s('f32[4]', 'reduce-precision(p0), exponent_bits=0, mantissa_bits=10', 'f32[4]')
        s('f32[4]', 'reduce-precision(p0), exponent_bits=5, mantissa_bits=10', 'bf16[4]')
        s('f32[4]; u32[4]', 'stochastic-convert(p0, p1)', 's8[4]')
        s('f32[4]; u16[4]', 'stochastic-convert(p0, p1)', 's8[4]')
        s('f32[4]', 'bitcast(p0)', 's32[4]')
        s('f32[4]', 'custom-call(p0), custom_call_target="t"', 'f32[7]')
        s('f32[4]; s32[]', 'dynamic-reshape(p0, p1)', 'f32[<=4]')

    def sources():
        for value, r in [('{1, 2}', 'f32[2]'), ('{1, 2}', 's4[2]'), ('1', 'pred[]'), ('(1, 2)', 'c64[]'), ('{1, 2}', 'f32[3]'),
                         ('1', 'token[]'), ('({1}, 2)', '(f32[1], s32[])')]:
            s('', f'constant({value})', r)
        for n, r in [(0, 'f32[2]'), (1, 'f32[2]'), (-1, 'f32[2]'), (0, '(f32[2], token[])'), (0, 'token[]')]:
            s('', f'parameter({n})', r)

    def newer():
        """XLA 0.10.2 does not know these opcodes, nor does xlac when asked to be strict."""
        s('f32[4]', 'atan(p0)')
        s('f32[4]', 'shuffle(p0), dimensions={0}, mode=rotate, shifts={1}')
        s('f32[4]', 'collective-reduce(p0), replica_groups={{0}}, to_apply=add', 'f32[4]', 'add')

    for part in (elementwise, movement, tuples, contractions, reductions, indexing, linalg, control, collectives,
                 pairs, sources, newer):
        part()
    return out


def opcodes():
    """All opcodes that some snippet is about, the starts of pairs among them."""
    lines = [line for s in SNIPPETS for line in s.before.split('\n') if line]
    return {s.opcode for s in SNIPPETS} | {re.search(r' ([a-z][a-z0-9-]*)\(', line)[1] for line in lines}


SNIPPETS = _snippets()
