"""`jax.experimental.custom_partitioning`: Python functions that say, while a program is compiled, how an op of theirs runs on shards.

The plugin calls here with a program that has such ops. Its shardings are spread, each op's function is asked for the program of a device's
shards, and a `sdy.manual_computation` that calls that takes the op's place: what moves arrays between shardings is then the partitioner's.
"""
import ctypes
import threading

import numpy as np

TARGET = "CustomSPMDPartitioning"
kept = {}  # the last program of each thread, until the plugin has copied it; Python forgets what is local to threads that are not its own


class Shardings:
    """Between sdy's shardings and those of HLO's that JAX's functions take and give. `axes`: {mesh: {axis: size}}."""

    def __init__(self, module, sdy, clients):
        self.sdy, self.clients, self.axes = sdy, clients, {}
        for op in module.body.operations:
            if op.operation.name == "sdy.mesh":
                mesh = sdy.MeshAttr(op.attributes["mesh"])
                self.axes[op.attributes["sym_name"].value] = {axis.name: axis.size for axis in map(sdy.MeshAxisAttr, mesh.axes)}

    def of_value(self, value):
        """The sharding of an op's result or a block's argument, None where nothing is said of it."""
        from jaxlib.mlir import ir
        inside = isinstance(value.owner, ir.Block)
        number = ir.BlockArgument(value).arg_number if inside else ir.OpResult(value).result_number
        owner = (value.owner.owner if inside else value.owner).operation
        attributes = owner.attributes
        if owner.name == "func.func":
            attributes = attributes["arg_attrs"][number] if "arg_attrs" in attributes else {}
            return self.sdy.TensorShardingAttr(attributes["sdy.sharding"]) if "sdy.sharding" in attributes else None
        if owner.name in ("sdy.sharding_constraint", "sdy.reshard"):
            return self.sdy.TensorShardingAttr(attributes["sharding"])
        name = "sdy.sharding" if owner.name != "sdy.manual_computation" else "in_shardings" if inside else "out_shardings"
        return self.sdy.TensorShardingAttr(self.sdy.TensorShardingPerValueAttr(attributes[name]).shardings[number]) if name in attributes else None

    def to_hlo(self, sharding):
        """Tiles in the order of the mesh's axes, cut where a sharding takes a part of one."""
        proto = self.clients.OpSharding()
        if sharding is None:
            return self.clients.HloSharding.replicate()
        axes = self.axes[self.mesh_of(sharding)]
        dims = [[self.part(axis, axes) for axis in map(self.sdy.AxisRefAttr, self.sdy.DimensionShardingAttr(dim).axes)]
                for dim in sharding.dimension_shardings]
        cuts = {name: {1, size} for name, size in axes.items()}  # products of sizes at which an axis is cut
        for name, first, size in sum(dims, []):
            cuts[name] |= {first, first * size}
        parts = [(name, a, b // a) for name in axes for a, b in zip(sorted(cuts[name]), sorted(cuts[name])[1:])]
        taken = [part for dim in dims for axis in dim for part in parts if part[0] == axis[0] and axis[1] <= part[1] < axis[1] * axis[2]]
        if not taken:
            return self.clients.HloSharding.replicate()
        order = taken + [part for part in parts if part not in taken]
        ids = np.arange(int(np.prod([size for _, _, size in parts]))).reshape([size for _, _, size in parts])
        tiles = [int(np.prod([size for _, _, size in dim])) for dim in dims]
        rest = ids.size // int(np.prod(tiles))
        proto.type = self.clients.OpSharding.Type.OTHER
        proto.tile_assignment_dimensions = tiles + [rest] * (rest > 1)
        proto.tile_assignment_devices = ids.transpose([parts.index(part) for part in order]).ravel().tolist()
        proto.replicate_on_last_tile_dim = rest > 1
        return self.clients.HloSharding.from_proto(proto)

    def part(self, axis, axes):
        """(axis, product of the sizes before it, its size)"""
        info = axis.sub_axis_info
        return (axis.name, info.pre_size, info.size) if info else (axis.name, 1, axes[axis.name])

    def mesh_of(self, sharding):
        return sharding.mesh_or_ref.value

    def to_sdy(self, sharding, rank, mesh):
        import jax
        from jax._src.sharding_impls import parse_flatten_op_sharding
        axes = self.axes[mesh]
        spec = parse_flatten_op_sharding(sharding, jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes)))[0]
        spec = [() if axes is None else (axes,) if isinstance(axes, str) else axes for axes in spec] + [()] * (rank - len(spec))
        dims = [self.sdy.DimensionShardingAttr.get([self.sdy.AxisRefAttr.get(name) for name in dim], is_closed=True) for dim in spec]
        return self.sdy.TensorShardingAttr.get(mesh, dims)


def import_functions(module, program, prefix):
    """Moves a program's functions into the module, under names of their own. The name of its main function."""
    from jaxlib.mlir import ir
    for op in list(program.body.operations):
        if op.operation.name == "sdy.mesh":
            continue  # the module's
        name = ir.StringAttr(op.attributes["sym_name"]).value
        ir.SymbolTable.replace_all_symbol_uses(name, prefix + name, program.operation)
        ir.SymbolTable.set_symbol_name(op, prefix + name)
        ir.SymbolTable.set_visibility(op, "private")
    functions = [op for op in program.body.operations if op.operation.name != "sdy.mesh"]
    for op in functions:
        module.body.append(op)
    return prefix + "main"


def replace(module, op, shardings, number):
    """One op by what its function says of it."""
    from jax._src import custom_partitioning
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    clients, sdy = shardings.clients, shardings.sdy
    operands, results = list(op.operands), list(op.results)
    given = [shardings.of_value(value) for value in operands + results]
    meshes = {shardings.mesh_of(s) for s in given if s is not None} or set(list(shardings.axes)[:1])
    if len(meshes) != 1:
        raise NotImplementedError(f"custom_partitioning: operands and results are cut along the axes of {len(meshes)} meshes; one is expected")
    mesh, = meshes
    shapes = [array_shape(value, clients) for value in operands + results]
    cut = [shardings.to_hlo(s) for s in given]
    n = len(operands)
    single = len(results) == 1
    shape = shapes[n] if single else clients.Shape.tuple_shape(shapes[n:])
    wanted = cut[n] if single else clients.HloSharding.tuple_sharding(shape, cut[n:])
    key = ir.StringAttr(op.attributes["backend_config"]).value.encode()
    program, arguments, wanted = custom_partitioning._custom_partitioning_partition(shapes[:n], cut[:n], shape, wanted, key)
    out = [wanted] if single else wanted.tuple_elements()
    program = ir.Module.parse(program)
    main = import_functions(module, program, f"custom_partitioning_{number}_")
    function = next(f for f in reversed(list(module.body.operations)) if ir.StringAttr(f.attributes["sym_name"]).value == main)
    local = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)

    def per_value(values, these):
        return sdy.TensorShardingPerValueAttr.get([shardings.to_sdy(s, ir.RankedTensorType(v.type).rank, mesh) for s, v in zip(these, values)])

    axes = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in shardings.axes[mesh]])
    with ir.InsertionPoint(op), op.location:
        manual = sdy.ManualComputationOp([r.type for r in results], operands, per_value(operands, arguments), per_value(results, out),
                                         sdy.ManualAxesAttr.get(axes))
        block = manual.regions[0].blocks.append(*local.inputs)
        with ir.InsertionPoint(block):
            called = mlir.func_dialect.CallOp(local.results, ir.FlatSymbolRefAttr.get(main), list(block.arguments))
            sdy.ReturnOp(list(called.results))
    for old, new in zip(results, manual.results):
        old.replace_all_uses_with(new)
    op.operation.erase()


def array_shape(value, clients):
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    kind = ir.RankedTensorType(value.type)
    dtype = next(np.dtype(d) for d in mlir._dtype_to_ir_type if mlir._dtype_to_ir_type[d]() == kind.element_type)
    return clients.Shape.array_shape(dtype, tuple(kind.shape))


def calls(module):
    from jaxlib.mlir import ir
    found = []

    def look(op):
        if op.name == "stablehlo.custom_call" and ir.StringAttr(op.attributes["call_target_name"]).value == TARGET:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found


def rewrite(code):
    """The program's text, without such ops."""
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import sdy

    import xlac
    spread = xlac.parse(code, format="auto").run("sdy-propagation-pipeline").to_text("mlir", locations=True)
    with mlir.make_ir_context():
        module = ir.Module.parse(spread)
        shardings = Shardings(module, sdy, xla_client)
        if not shardings.axes:
            raise NotImplementedError("custom_partitioning needs jax_use_shardy_partitioner, and arrays that are sharded along a mesh")
        for number, op in enumerate(calls(module)):
            replace(module, op, shardings, number)
        return module.operation.get_asm(enable_debug_info=True)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint64),
                  ctypes.c_void_p, ctypes.c_uint64)
def call(code, size, out, out_size, error, error_size):
    from .callbacks import tell
    try:
        program = kept[threading.get_ident()] = ctypes.create_string_buffer(rewrite(ctypes.string_at(code, size)).encode())
        out[0], out_size[0] = ctypes.addressof(program), len(program) - 1
        return 0
    except BaseException as e:  # nothing may leave by way of C
        return tell(e, error, error_size)


ADDRESS = ctypes.cast(call, ctypes.c_void_p).value
