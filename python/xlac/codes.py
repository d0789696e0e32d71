"""Generated from csrc/base/errors.def by docs/generate.py."""


class Code:
    """The stable numbers of errors: Error.code is one of them, or 0."""

    SYNTAX = 100  # the text is not well formed
    UNKNOWN_OPCODE = 101  # unknown opcode
    UNKNOWN_NAME = 102  # a name is used that nothing defines
    DUPLICATE_NAME = 103  # a name is defined twice
    BAD_ATTRIBUTE = 104  # an attribute is unknown here, repeated, missing or malformed
    BAD_LITERAL = 105  # a literal does not fit its shape or element type
    BAD_SHAPE_TEXT = 106  # a shape or layout is malformed
    BAD_HEADER = 107  # a module header attribute is malformed
    BAD_SHARDING_TEXT = 108  # a sharding is malformed
    CANNOT_INFER = 109  # a result shape is missing and can't be inferred
    BAD_PROTO = 110  # the bytes are not a serialized module
    VERIFY = 200  # an op breaks a rule of its opcode
    VERIFY_SHAPE = 201  # an op's shape is not what its operands and attributes give
    VERIFY_OPERANDS = 202  # an op has operands of the wrong number or types
    VERIFY_ATTRIBUTE = 203  # an attribute has a value its op can't have
    VERIFY_CALLED = 204  # a called computation does not fit its caller
    VERIFY_ASYNC = 205  # an async chain is malformed
    VERIFY_ALIAS = 206  # an alias or donor entry does not fit the program
    VERIFY_STRUCTURE = 207  # the module's structure is broken
    VERIFY_LAYOUT = 208  # a layout does not fit its shape
    VERIFY_SHARDING = 209  # a sharding does not fit its op
    VERIFY_COLLECTIVE = 210  # a collective's groups, channel or shapes are inconsistent
    VERIFY_SCHEDULE = 211  # the schedule is not a valid order
    INFER = 300  # no result shape follows from these operands
    EVAL = 400  # an op can't be evaluated
    UNKNOWN_CUSTOM_CALL = 401  # no implementation is registered under this custom-call target
    INTERRUPTED = 402  # the run was interrupted
    PARTICIPANTS = 403  # the program needs more participants than there are
    CHECK = 404  # a check in the program found other values than it expects
    DEVICE = 405  # a device, its driver or one of its libraries is missing or has failed
    ARGUMENT_COUNT = 500  # the number of arguments is not the number of parameters
    ARGUMENT_TYPE = 501  # an argument's element type is not the parameter's
    ARGUMENT_SHAPE = 502  # an argument's dimensions are not the parameter's
    BAD_ARGUMENT = 503  # a call's argument is out of range or of the wrong kind
    BUFFER_DELETED = 504  # a buffer was donated or deleted
    BUFFER_VIEWED = 505  # a buffer can't be donated or deleted while views of it are alive
    BUFFER_READONLY = 506  # a read-only buffer can't be donated
    DONATION_UNUSABLE = 507  # a donation that is required can't be used
    DONATION_TWICE = 508  # a call is given a buffer, and given or lent the same memory again
    OUT_OF_MEMORY = 600  # out of memory
    TOO_LARGE = 601  # a size is beyond what can be represented or allowed
    TOO_DEEP = 602  # nesting is too deep
    BAD_PIPELINE = 700  # a pass pipeline is malformed or names an unknown pass or option
    LEGALIZE = 701  # a pass must replace an op and cannot
    LOWER = 702  # a TensorFlow node can't be lowered
    EDIT = 800  # an edit would break the module
    INTERNAL = 850  # a rule of xlac itself is broken; please report the program
    IO = 900  # a file can't be read or written
    BAD_EXECUTABLE = 901  # the bytes are not an executable that can be loaded
