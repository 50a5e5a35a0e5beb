"""Words of the documentation, where a field's kind, or its help in the tables, does not give them. A key is the name of a field or an operand,
of all operations or, as "spmm.n", of one. Braces hold names: of the problem's type, of its arguments, and of the two factors of a product."""

NOUNS = {"values": "the values", "bias": "the bias", "residual": "the residual", "preact": "the pre-activation", "lse": "LSE",
         "grad_o": "the gradient by O", "grad_lse": "the gradient by LSE", "grad_q": "the gradient by Q", "grad_k": "the gradient by K",
         "grad_v": "the gradient by V"}

# Words of setters, of a field of one operation or of all. Else they come from the field's kind, or from its help.
WORDS = {
    "block_layout": "The order of elements inside a block of values.",
    "sddmm.block_layout": "The order of elements inside a block of D and C.",
    "layout_d": "The order of D, C, residual and pre-activation.",
    "gemm.layout_a": "The order of A's array, as it is before a transposition.",
    "gemm.layout_b": "The order of B's array, as it is before a transposition.",
    "activation": "What is applied to each element.",
    "bias": "Adds a bias before the activation.",
    "residual": "Adds a residual after the activation.",
    "factor": "Multiplies with the residual after the activation, element by element.",
    "use_c": "Adds beta C: [`{args}::c`] or [`{args}::c_in_place`] must be given.",
    "keep_preact": "Writes the value before the activation, too.",
    "batch": "Products of one pattern, each with arrays of its own.",
    "gemm.batch": "Products at once, each with arrays of its own.",
    "attention.batch": "Items, each with arrays of its own.",
    "spmm.stride_a": "From the values of one item to the next; 0: one A for all.",
    "compute": "Lets {factors} of float32 be rounded to ten bits behind the point (TF32).",
    "spmm.trans_a": "Takes A transposed.",
    "gemm.trans_a": "Takes A transposed: its array is `k` x `m`.",
    "gemm.trans_b": "Takes B transposed: its array is `n` x `k`.",
    "spmm.assume_finite": "You promise that B holds no infinity and no NaN: candidates that multiply filled-in zeros may win.",
    "sddmm.assume_finite": "You promise that X and Y hold no infinity and no NaN: candidates that multiply filled-in zeros may win.",
    "gemm.assume_finite": "You promise that A, B and the bias hold no infinity and no NaN: candidates may win that are right without them.",
    "attention.assume_finite":
        "You promise that V holds no infinity and no NaN, not even in rows that no query sees: kernels need not look for them.",
    "attention_backward.assume_finite":
        "You promise that no array that is read holds an infinity or a NaN, not even in rows that take no part; LSE may be -infinity. That is"
        " more than [`Attention::assume_finite`](crate::Attention::assume_finite) says, which does not count here.",
    "static_values":
        "You promise that values change only through [`SpmmPlan::update_values`], so that packing them is free. Runs ignore those of their"
        " arguments then, and [`Pattern::matmul`], which makes no plan to keep, refuses the problem.",
    "depth_v": "Columns of V and O; 0: as many as Q and K have.",
    "heads": "Heads of Q and O in an item.",
    "heads_kv":
        "Heads of K and V in an item; they divide those of Q: head h of Q goes with head h / (heads / heads_kv). 0: as many as Q has.",
    "diagonal": "Which key stands beside which query. Causality and windows want it where queries and keys are not as many.",
    "window_left": "A query sees so many keys up to the one beside it, which counts; 0: no limit.",
    "window_right":
        "A query sees so many keys from the one beside it on, which counts; 0: no limit. Not with [`Attention::causal`].",
    "sinks": "So many first keys are seen whatever [`Attention::window_left`], which must be given, says; all else holds for them, too.",
    "use_softcap": "A score s becomes c tanh(s / c), c being that of [`AttentionArgs::softcap`].",
    "want_lse":
        "Writes the natural logarithm of the sum of the exponentials of each query's scores, too: [`AttentionArgs::lse`].",
    "use_grad_lse": "The loss depends on LSE, too: [`AttentionBackwardArgs::grad_lse`] is the gradient by it.",
}
# Words of setters of arguments.
ARGUMENT_WORDS = {
    "alpha": "The factor of the product, finite.",
    "scale": "The factor of the scores, finite.",
    "attention_backward.scale": "The factor of the scores, as the attention had it.",
    "softcap": "The bound of the scores, finite, for [`Attention::use_softcap`](crate::Attention::use_softcap); 0: none.",
    "attention_backward.softcap":
        "The bound of the scores, as the attention had it, for [`Attention::use_softcap`](crate::Attention::use_softcap).",
    "bias": "The bias, for [`{type}::bias`].",
    "residual": "The residual, for [`{type}::residual`] and [`{type}::factor`].",
    "c": "C and its factor, for [`{type}::use_c`].",
    "preact": "Where the value before the activation goes, for [`{type}::keep_preact`].",
    "offsets": "Where each group ends, ascending, for [`Gemm::groups`]; the first begins at 0. What lies behind the last end takes no part.",
    "lse": "Where LSE goes, for [`Attention::want_lse`]: a number for each query of each head, f32 (f64 for f64).",
    "grad_lse": "The gradient by LSE, for [`AttentionBackward::use_grad_lse`].",
    "query_ends":
        "For [`Attention::sequences`], a number for each: the queries that it and those before it have. The first sequence has the rows"
        " `0 .. query_ends[0]` of Q and O. (Of offsets that begin with 0 these are all but the first.)",
    "key_ends":
        "With [`Attention::sequences`], a number for each: the keys that it and those before it have. With [`Attention::key_lengths`], a number"
        " for each item, and with [`Attention::pages`], for each item or sequence: its keys, at most as many as the problem has.",
    "page_table":
        "For [`Attention::pages`]: the numbers of the pages of each item or sequence, in order, ceil(keys / page keys) for each. Numbers behind"
        " its last key count for nothing.",
    "attention_backward.query_ends": "As [`AttentionArgs::query_ends`](crate::AttentionArgs::query_ends).",
    "attention_backward.key_ends": "As [`AttentionArgs::key_ends`](crate::AttentionArgs::key_ends).",
}
# What a pointer is to. Else the operand's title.
POINTER_WORDS = {
    "values": "Values of all stored blocks.", "bias": "The bias.", "residual": "The residual; may be D.", "c": "C; may be D.",
    "preact": "Where the value before the activation goes.", "offsets": "Where each group ends; on a GPU nobody checks it.",
    "alpha": "The factor of the product.", "beta": "The factor of C.", "lse": "LSE; null where the problem has none.",
    "scale": "The factor of the scores; none: 1 / sqrt(depth).", "softcap": "The bound of the scores; 0: none.",
    "query_ends": "See [`{args}::query_ends`]; null where the problem has no sequences.",
    "key_ends": "See [`{args}::key_ends`]; null where the problem has neither sequences nor key lengths.",
    "page_table": "See [`{args}::page_table`]; null where the problem has no pages.",
    "tile_numbers": "See [`{args}::tiles`]; null where the problem has none.",
    "tile_bits": "See [`{args}::tiles`]; null where the problem has none.",
    "attention_backward.o": "O, as the attention gave it.", "attention_backward.lse": "LSE, likewise.",
    "grad_o": "The gradient by O.", "grad_lse": "The gradient by LSE; null where the problem has none.",
    "grad_q": "The gradient by Q, to be written.", "grad_k": "The gradient by K, to be written.", "grad_v": "The gradient by V, to be written.",
    "attention_backward.scale": "The factor of the scores, as the attention had it; none: 1 / sqrt(depth).",
}
# Examples of arguments' setters: lines before, and what is called.
EXAMPLES = {
    "alpha": ((), "alpha(-2.0)"),
    "scale": ((), "scale(0.125)"),
    "softcap": ((), "softcap(30.0)"),
    "c": (("let c = [1f32; 6];",), "c(&c, 0.5)"),
    "c_in_place": ((), "c_in_place(1.0)"),
    "bias": ((), "bias(&[1.0, 2.0])"),
    "residual": (("let residual = [1f32; 6];",), "residual(&residual)"),
    "residual_in_place": ((), "residual_in_place()"),
    "preact": (("let mut preact = [0f32; 6];",), "preact(&mut preact)"),
    "offsets": ((), "offsets(&[2, 2, 4])"),
    "lse": (("let mut lse = [0f32; 2];",), "lse(&mut lse)"),
    "grad_lse": ((), "grad_lse(&[0.5])"),
    "query_ends": (("// Two sequences: of two queries on three keys, and of one on one.",), "query_ends(&[2, 3]).key_ends(&[3, 4])"),
    "key_ends": (("// Two items of three keys; the second one has only the first of them.",), "key_ends(&[3, 1])"),
    "page_table": (("// Two items of up to 32 keys, in pages of 16 keys: those of the first are in pages 3 and 0.",), "page_table(&[3, 0, 1, 2])"),
}
