"""Why xlac is behind on a kind of program, and what could be done: the last columns of docs/performance.md's table of misses. The first row whose
pattern is found in a program's name is taken. Causes are inferred from the code and the figures unless a row says that it was profiled."""
import re

CAUSES = [
    (r"^op (power)$", "integers: XLA's exponents are cut to six bits; floats: on pairs, within 1 ulp, where XLA is off by more",
     "none without XLA's values"),
    (r"^op convert$", "to c128 and from 8-bit floats: lanes widen by more than one step, with a store between them", "stores of two lanes of f64 from one of f32"),
    (r"^op imag$", "the imaginary part of a real number is 0, and XLA leaves out the addition of it, which makes 0 of -0", "none"),
    (r"^op (shift-\S+|popcnt|count-leading-zeros)$", "bytes are widened, for there are no shifts of them; 4 and 8 bytes are bound by memory",
     "shifts of 16 bits and masks, AVX-512's counts of bytes, tables by `vpshufb`"),
    (r"^op (negate|abs|real|complex|select|compare|add|subtract|minimum|maximum|or|and|xor|not|clamp|sign|floor|ceil|round-\S+|is-finite|multiply|mulhi"
     r"|reduce-precision)$", "4 and 8 bytes: bound by memory, 0.5 to 1.3 from one run to the next; complex numbers are parted into real and imaginary lanes; "
     "8-bit floats are rounded by steps of integers, where XLA goes by way of f16",
     "ops that are alike for both parts of a complex number on lanes as they lie; a table of rounded bits for 8-bit floats"),
    (r"^op ", "c128 is computed by calls, on pairs of f64; 16-bit floats as f32, and f32 with smaller errors than XLA's; 8-bit floats are rounded by steps of "
     "integers", "pairs of f64 in machine code; shorter series where a result is rounded to 16 bits anyway"),
    (r"gamma", "profiled: lgamma and digamma called for one number at a time, as those of f64 are", "those of f64 as straight-line code, too"),
    (r"schroedinger", "profiled: Fourier transforms with transpositions between them", "the transposition in the transform's last step"),
    (r"jpeg", "profiled when a long array times a small matrix went by a packed copy (since then: dot_tiny.c)", "to be profiled again"),
    (r"mixture_of_experts", "profiled when a product had its batches side by side in what another gives (since then: algebraic simplification)", "the gate's zeros left out"),
    (r"message_passing", "profiled: gathered rows are joined before a product", "a product for each part, added up"),
    (r"belief_propagation", "profiled: logarithms of sums of exponentials over short rows", "rows side by side in lanes"),
    (r"walsh", "profiled: slices and what joins them are steps of their own", "one kernel for all of a stage"),
    (r"images_for_a_network", "profiled: one kernel, which reads bytes backwards", "loads turned by a shuffle"),
    (r"s8|int8", "profiled when AMX's left bytes had to be unsigned, which takes a row more and a second pass, as it does with VNNI; sums go by way of a buffer",
     "sums stored from tiles straight into the result"),
    (r"attn|attention|gpt2_block", "scores, softmax and product are steps of their own for long rows; the scores go through memory", "online softmax, block by block"),
    (r"gelu|tanh", "tanh is a polynomial by interval, within 0.65 ulp, whose coefficients are permuted into lanes; the peers' have fewer terms and are off by 2 to 4 ulp",
     "under `fast`, fewer terms"),
    (r"transc", "sine and cosine go by way of f64 and are within 0.5 ulp; the peers' are of f32", "sine and cosine in pairs of f32"),
    (r"softmax|layer_?norm|rms_?norm|var_|batchnorm|normali[sz]", "more than one pass over a row, each with an end of less than a vector",
     "rows in registers where they are short, sums and squares in one pass where they are long"),
    (r"rng_|normal|random|dropout", "threefry with the inverse of erf behind it; PyTorch's is a Mersenne twister, another stream of numbers",
     "fewer terms of the inverse near its middle"),
    (r"scatter|segment|histogram|embedding_update|embedding_gradient|particle|cloud_in_cell|graph_mean", "updates are made one after the other: the order of sums is fixed", "indexes sorted into blocks first"),
    (r"rowsum|colsum|fullsum|sum|mean", "sums have a fixed tree, which keeps fewer loads in flight; the second thread has to be woken",
     "more rows at once; threads that wait a moment before they sleep"),
    (r"conv|resnet|pool|block_nhwc", "layouts are not blocked through a chain of convolutions, and there is no Winograd", "blocked layouts kept between convolutions"),
    (r"lstm|gru|rnn|elman|echo_state|scan", "weights are read anew each step, and each step of the loop is several kernels", "weights packed once before the loop"),
    (r"mm_|mlp|gpt|dot_|product|gemv|bmm|dense|linear|matmul", "products of middle sizes are OpenBLAS's, with what follows in a pass of its own",
     "own tiles with epilogues for all sizes"),
    (r"transpose|concat|roll|flip|rotate", "blocks are smaller than pages of 2 MB", "larger blocks, prefetch of the next row"),
    (r"while|collatz|congruence|viterbi|loop|pendulum|forward_algorithm", "a body with small arrays is a list of instructions and not one function",
     "arrays of up to 64 elements in registers"),
    (r"sort|topk|argmax", "few elements a row: setting up a row takes as long as sorting it", "rows side by side in lanes"),
    (r"fft", "radices and twiddles of a plan are not fused with their neighbours", "the first and the last step in the kernels around them"),
    (r"saxpy|copy|gather|slice", "bound by memory: what differs is who wakes its threads sooner", "threads that wait a moment before they sleep"),
]


def cause_of(name):
    return next(((cause, idea) for pattern, cause, idea in CAUSES if re.search(pattern, name)), ("not looked into", "a profile"))
